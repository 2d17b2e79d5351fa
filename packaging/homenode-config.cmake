# find_package(homenode) gives
#   homenode::homenode   the C interface
#   homenode::fortran    the Fortran module: its source is compiled with yours, and the C interface linked
# Folders are relative to this file, so the installation may be moved.
get_filename_component(_homenode_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET homenode::homenode)
    add_library(homenode::homenode SHARED IMPORTED)
    set_target_properties(homenode::homenode PROPERTIES
        IMPORTED_LOCATION "${_homenode_prefix}/lib/homenode/libhomenode.so"
        IMPORTED_SONAME libhomenode.so
        INTERFACE_INCLUDE_DIRECTORIES "${_homenode_prefix}/include")
    add_library(homenode::fortran INTERFACE IMPORTED)
    set_target_properties(homenode::fortran PROPERTIES
        INTERFACE_SOURCES "${_homenode_prefix}/share/homenode/fortran/homenode.f90"
        INTERFACE_LINK_LIBRARIES homenode::homenode)
endif()
unset(_homenode_prefix)
