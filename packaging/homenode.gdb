# For gdb -x: homenode brings pages by SIGBUS, and in containers by SIGSEGV; both are for the
# program to handle.
handle SIGBUS nostop noprint pass
