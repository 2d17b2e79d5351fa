! homenode: tell the run-time system what it cannot see, and place threads and memory. See
! homenode.h.
!
! Addresses are c_loc(array), lengths are in bytes. Arguments that may be null in C are optional
! here. hn_text turns a text of hn_message or hn_last_error into a string.
!
! Made by 'cargo xtask c-api': do not edit.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module homenode
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_double_complex, c_f_pointer, c_float, c_int, &
      c_int32_t, c_int64_t, c_loc, c_ptr, c_size_t
   implicit none
   private
   public :: HN_OK
   public :: HN_IDLE
   public :: HN_EINVAL
   public :: HN_ENODE
   public :: HN_EPERM
   public :: HN_ENOMEM
   public :: HN_PARTIAL
   public :: HN_ERANGE
   public :: HN_ESYSTEM
   public :: HN_END
   public :: HN_ABSENT
   public :: HN_UNKNOWN
   public :: HN_FIRST_TOUCH
   public :: HN_BLOCK
   public :: HN_STAR
   public :: HN_OVER_NODES
   public :: HN_DIMENSIONS
   public :: hn_node
   public :: hn_placement
   public :: hn_distribution
   public :: hn_spread
   public :: hn_iteration
   public :: hn_next_touch
   public :: hn_bind_cpu
   public :: hn_bind_node
   public :: hn_unbind
   public :: hn_here
   public :: hn_place
   public :: hn_move
   public :: hn_verify
   public :: hn_where
   public :: hn_nodes
   public :: hn_node_info
   public :: hn_node_cpus
   public :: hn_distance
   public :: hn_message
   public :: hn_last_error
   public :: hn_distribute
   public :: hn_redistribute
   public :: hn_alloc_padded
   public :: hn_free_padded
   public :: hn_verify_distribution
   public :: hn_owner
   public :: hn_range_of
   public :: hn_next_of
   public :: hn_bind_share_of
   public :: hn_loop
   public :: hn_cyclic
   public :: hn_range
   public :: hn_next
   public :: hn_bind_share
   public :: hn_text

   ! done, or noted in the recording
   integer(c_int), parameter :: HN_OK = 0

   ! homenode is not watching this program: nothing to do
   integer(c_int), parameter :: HN_IDLE = 1

   ! an argument makes no sense (null, a range beyond the address space or not mapped)
   integer(c_int), parameter :: HN_EINVAL = 2

   ! there is no such node or CPU, it lacks what was asked for, or this process may not use it
   integer(c_int), parameter :: HN_ENODE = 3

   ! the system forbids the call
   integer(c_int), parameter :: HN_EPERM = 4

   ! the node has not enough free memory
   integer(c_int), parameter :: HN_ENOMEM = 5

   ! done for a part: some pages are elsewhere, or not in memory
   integer(c_int), parameter :: HN_PARTIAL = 6

   ! the array is too short for the answer
   integer(c_int), parameter :: HN_ERANGE = 7

   ! a system call failed in another way: see hn_last_error
   integer(c_int), parameter :: HN_ESYSTEM = 8

   ! hn_next: there are no more indices for this thread
   integer(c_int), parameter :: HN_END = 9

   ! hn_where: the page is not in memory (never written, or swapped out)
   integer(c_int), parameter :: HN_ABSENT = -1

   ! hn_where: the system does not say where the page is
   integer(c_int), parameter :: HN_UNKNOWN = -2

   ! hn_place: the node of the thread that touches a page first, as without homenode
   integer(c_int), parameter :: HN_FIRST_TOUCH = -1

   ! hn_distribute: each part gets one range of this dimension, as schedule(static) would give it
   integer(c_int), parameter :: HN_BLOCK = -1

   ! hn_distribute: this dimension is not distributed
   integer(c_int), parameter :: HN_STAR = -2

   ! hn_distribute: one part for each node that has memory and CPUs
   integer(c_int), parameter :: HN_OVER_NODES = 0

   ! hn_distribute: most dimensions of an array
   integer(c_int), parameter :: HN_DIMENSIONS = 7

   ! What this process may use of a node.
   type, bind(c) :: hn_node
      ! bytes of memory; 0: none, or none for this process
      integer(c_int64_t) :: memory
      ! bytes of it that are free now
      integer(c_int64_t) :: free_memory
      ! CPUs; 0: memory alone
      integer(c_int32_t) :: cpus
      ! the number of the node
      integer(c_int32_t) :: number
   end type

   ! Pages of a range by where they are.
   type, bind(c) :: hn_placement
      ! pages that the range touches
      integer(c_int64_t) :: pages
      ! on the node asked for
      integer(c_int64_t) :: there
      ! on other nodes
      integer(c_int64_t) :: elsewhere
      ! not in memory: never written, or swapped out
      integer(c_int64_t) :: absent
      ! the system does not say
      integer(c_int64_t) :: unknown
   end type

   ! An array and how it is distributed. hn_distribute and hn_alloc_padded fill it in; the fields
   ! are there to read. It may be copied, and needs no release.
   type, bind(c) :: hn_distribution
      ! the first element
      type(c_ptr) :: address
      ! bytes of the array, with the padding of its rows
      integer(c_int64_t) :: bytes
      ! bytes of an element
      integer(c_int64_t) :: element
      ! elements from one row of the innermost dimension to the next
      integer(c_int64_t) :: leading
      ! bytes that hn_alloc_padded allocated; 0: the memory is the program's own
      integer(c_int64_t) :: allocated
      ! indices of each dimension, the outermost first
      integer(c_int64_t) :: extents(7)
      ! block borders are multiples of this
      integer(c_int64_t) :: units(7)
      ! HN_STAR, HN_BLOCK, or the chunk size of HN_CYCLIC
      integer(c_int64_t) :: spec(7)
      ! parts in each dimension
      integer(c_int32_t) :: grid(7)
      ! how many dimensions there are
      integer(c_int32_t) :: dims
      ! HN_OVER_NODES, or the number of parts that was asked for
      integer(c_int32_t) :: over
      ! tells a handle from other memory
      integer(c_int32_t) :: mark
   end type

   ! Pages of a distributed array by where they are.
   type, bind(c) :: hn_spread
      ! pages that the array touches
      integer(c_int64_t) :: pages
      ! on the node that owns most of the page
      integer(c_int64_t) :: there
      ! on other nodes
      integer(c_int64_t) :: elsewhere
      ! not in memory: never written, or swapped out
      integer(c_int64_t) :: absent
      ! the system does not say
      integer(c_int64_t) :: unknown
      ! bytes of the array, with the padding of its rows
      integer(c_int64_t) :: bytes
      ! bytes of them whose page belongs to another node: what rounding to pages put elsewhere
      integer(c_int64_t) :: stray
   end type

   interface
      ! Says that round number (from 0) of the program's outer loop begins. Call it at the top of
      ! the loop, from one thread, outside of parallel regions or inside master/single. Call it once
      ! more after the loop, with the number of rounds: that ends the last round.
      function hn_iteration(number) &
         bind(c) result(code)
         import
         integer(c_int32_t), value :: number
         integer(c_int) :: code
      end function
      ! Asks homenode to move each whole page in [address, address + length) to the node of the
      ! thread that touches the page next. The contents stay the same. Memory that cannot be moved
      ! safely (shared, file-backed, pinned) stays where it is.
      function hn_next_touch(address, length) &
         bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int) :: code
      end function
      ! Binds the calling thread to cpu.
      function hn_bind_cpu(cpu) &
         bind(c) result(code)
         import
         integer(c_int32_t), value :: cpu
         integer(c_int) :: code
      end function
      ! Binds the calling thread to the CPUs of node.
      function hn_bind_node(node) &
         bind(c) result(code)
         import
         integer(c_int32_t), value :: node
         integer(c_int) :: code
      end function
      ! Undoes hn_bind_cpu and hn_bind_node: the calling thread may run where it might before the
      ! first of these calls.
      function hn_unbind() &
         bind(c) result(code)
         import
         integer(c_int) :: code
      end function
      ! Stores the CPU and the node that run the caller. Either pointer may be null. A thread that
      ! is not bound may have moved to another CPU when the call returns.
      function hn_here(cpu, node) &
         bind(c) result(code)
         import
         integer(c_int32_t), intent(out), optional :: cpu
         integer(c_int32_t), intent(out), optional :: node
         integer(c_int) :: code
      end function
      ! Sets the node of the pages of [address, address + length) that are not in memory yet. Such a
      ! page comes from node at its first touch, whichever thread touches it, while the node has
      ! room. With HN_FIRST_TOUCH it comes from the toucher's node, as without homenode. Pages that
      ! are in memory stay. homenode run does not move memory that the program placed with this
      ! call.
      function hn_place(address, length, node) &
         bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), value :: node
         integer(c_int) :: code
      end function
      ! Moves the pages of [address, address + length) that are in memory to node. The contents stay
      ! the same. HN_PARTIAL: some pages are elsewhere afterwards. found receives the counts and may
      ! be null. homenode run does not move memory that the program moved with this call.
      function hn_move(address, length, node, found) &
         bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), value :: node
         type(hn_placement), intent(out), optional :: found
         integer(c_int) :: code
      end function
      ! Counts the pages of [address, address + length) by where they are. HN_OK: all are on node.
      ! HN_PARTIAL: some are not. found receives the counts and may be null.
      function hn_verify(address, length, node, found) &
         bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), value :: node
         type(hn_placement), intent(out), optional :: found
         integer(c_int) :: code
      end function
      ! Stores the node of each page of [address, address + length) in nodes, or HN_ABSENT or
      ! HN_UNKNOWN. nodes has room for capacity numbers. Stores the number of pages in pages,
      ! which may be null. HN_ERANGE: there are more pages than capacity, and nodes has the first
      ! capacity of them. To ask for the number of pages alone, pass capacity 0; nodes may then be
      ! null.
      function hn_where(address, length, nodes, capacity, pages) &
         bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), intent(out), optional :: nodes(*)
         integer(c_size_t), value :: capacity
         integer(c_size_t), intent(out), optional :: pages
         integer(c_int) :: code
      end function
      ! Stores the numbers of the nodes whose memory or CPUs this process may use in nodes,
      ! ascending. The numbers may have gaps. nodes has room for capacity numbers. Stores how many
      ! nodes there are in count, which may be null. HN_ERANGE: there are more nodes than capacity.
      ! To ask for the count alone, pass capacity 0; nodes may then be null.
      function hn_nodes(nodes, capacity, count) &
         bind(c) result(code)
         import
         integer(c_int32_t), intent(out), optional :: nodes(*)
         integer(c_size_t), value :: capacity
         integer(c_size_t), intent(out), optional :: count
         integer(c_int) :: code
      end function
      ! Stores what this process may use of node number in node.
      function hn_node_info(number, node) &
         bind(c) result(code)
         import
         integer(c_int32_t), value :: number
         type(hn_node), intent(out), optional :: node
         integer(c_int) :: code
      end function
      ! Stores the numbers of the CPUs of node that this process may use in cpus, ascending. Its
      ! capacity and count work as those of hn_nodes.
      function hn_node_cpus(node, cpus, capacity, count) &
         bind(c) result(code)
         import
         integer(c_int32_t), value :: node
         integer(c_int32_t), intent(out), optional :: cpus(*)
         integer(c_size_t), value :: capacity
         integer(c_size_t), intent(out), optional :: count
         integer(c_int) :: code
      end function
      ! Stores in distance the system's distance from one node's CPUs (from) to another node's
      ! memory (to). 10 is local; a larger number is farther.
      function hn_distance(from, to, distance) &
         bind(c) result(code)
         import
         integer(c_int32_t), value :: from
         integer(c_int32_t), value :: to
         integer(c_int32_t), intent(out), optional :: distance
         integer(c_int) :: code
      end function
      ! Returns the text of a return code. It is never null. Do not free it.
      function hn_message(code) &
         bind(c) result(text)
         import
         integer(c_int32_t), value :: code
         type(c_ptr) :: text
      end function
      ! Describes the last failure of these functions in the calling thread: what was tried, on
      ! what, what the system said, and what to do. The text is empty if nothing has failed, and
      ! never null. Do not free it. The next call that fails in this thread changes it.
      function hn_last_error() &
         bind(c) result(text)
         import
         type(c_ptr) :: text
      end function
      ! Distributes an array over nodes or threads, and fills in handle. The array has dims
      ! dimensions, the outermost first (C's order), with extents[0], extents[1], … indices and
      ! elements of element bytes. Each dimension is HN_STAR (not distributed), HN_BLOCK (one range
      ! a part) or HN_CYCLIC(k) (chunks of k indices in turn). over is HN_OVER_NODES, or a number of
      ! parts, such as omp_get_max_threads(): neighbouring parts then share a node. Each page goes
      ! to the node that owns most of it; existing pages move, and contents stay. HN_PARTIAL: some
      ! pages are elsewhere. homenode run does not move a distributed array.
      function hn_distribute_c(address, extents, element, dims, spec, over, handle) &
         bind(c, name='hn_distribute') result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), intent(in) :: extents(*)
         integer(c_size_t), value :: element
         integer(c_int32_t), value :: dims
         integer(c_int64_t), intent(in) :: spec(*)
         integer(c_int32_t), value :: over
         type(hn_distribution), intent(inout) :: handle
         integer(c_int) :: code
      end function
      ! Distributes the array of handle anew, as spec and over say. Pages move; contents stay.
      function hn_redistribute_c(handle, spec, over) &
         bind(c, name='hn_redistribute') result(code)
         import
         type(hn_distribution), intent(inout) :: handle
         integer(c_int64_t), intent(in) :: spec(*)
         integer(c_int32_t), value :: over
         integer(c_int) :: code
      end function
      ! Allocates a distributed array in which no page has elements of two parts, and fills in
      ! handle: handle->address is the array, handle->leading the number of elements from one row of
      ! the innermost dimension to the next. Rows are padded, or block borders are rounded to pages,
      ! where that costs less. The memory is zero. hn_free_padded gives it back.
      function hn_alloc_padded_c(extents, element, dims, spec, over, handle) &
         bind(c, name='hn_alloc_padded') result(code)
         import
         integer(c_size_t), intent(in) :: extents(*)
         integer(c_size_t), value :: element
         integer(c_int32_t), value :: dims
         integer(c_int64_t), intent(in) :: spec(*)
         integer(c_int32_t), value :: over
         type(hn_distribution), intent(inout) :: handle
         integer(c_int) :: code
      end function
      ! Frees the array of hn_alloc_padded, and clears handle. Other arrays are the program's own,
      ! and are refused.
      function hn_free_padded(handle) &
         bind(c) result(code)
         import
         type(hn_distribution), intent(inout) :: handle
         integer(c_int) :: code
      end function
      ! Reads back where the pages of a distributed array are. HN_OK: all are on the node that owns
      ! most of the page. HN_PARTIAL: some are not. found receives the counts, with the bytes that
      ! rounding to pages put elsewhere, and may be null.
      function hn_verify_distribution(handle, found) &
         bind(c) result(code)
         import
         type(hn_distribution), intent(in) :: handle
         type(hn_spread), intent(out), optional :: found
         integer(c_int) :: code
      end function
      ! Stores the part and the node that own the element with indices (one for each dimension, the
      ! outermost first). Either pointer may be null.
      function hn_owner(handle, indices, part, node) &
         bind(c) result(code)
         import
         type(hn_distribution), intent(in) :: handle
         integer(c_size_t), intent(in) :: indices(*)
         integer(c_int32_t), intent(out), optional :: part
         integer(c_int32_t), intent(out), optional :: node
         integer(c_int) :: code
      end function
      ! Stores in low and high the range of dimension dim that thread thread of team threads works
      ! on: from low up to, not including, high. The ranges of all threads of a team, whatever its
      ! size, cover the array once. A range may be empty. HN_EINVAL: the thread's indices are no one
      ! range (HN_CYCLIC); use hn_next_of. hn_range asks for the calling thread.
      function hn_range_of(handle, dim, thread, team, low, high) &
         bind(c) result(code)
         import
         type(hn_distribution), intent(in) :: handle
         integer(c_int32_t), value :: dim
         integer(c_int32_t), value :: thread
         integer(c_int32_t), value :: team
         integer(c_size_t), intent(out), optional :: low
         integer(c_size_t), intent(out), optional :: high
         integer(c_int) :: code
      end function
      ! Stores in low and high the next range of dimension dim that thread thread of team
      ! threads works on. cursor is 0 before the first call. HN_END: there is no further range.
      ! hn_next asks for the calling thread.
      function hn_next_of(handle, dim, thread, team, cursor, low, high) &
         bind(c) result(code)
         import
         type(hn_distribution), intent(in) :: handle
         integer(c_int32_t), value :: dim
         integer(c_int32_t), value :: thread
         integer(c_int32_t), value :: team
         integer(c_int64_t), intent(inout) :: cursor
         integer(c_size_t), intent(out), optional :: low
         integer(c_size_t), intent(out), optional :: high
         integer(c_int) :: code
      end function
      ! Binds the calling thread, which is thread thread of team threads, to the node of its part of
      ! the array. hn_bind_share asks for the calling thread's number.
      function hn_bind_share_of(handle, thread, team) &
         bind(c) result(code)
         import
         type(hn_distribution), intent(in) :: handle
         integer(c_int32_t), value :: thread
         integer(c_int32_t), value :: team
         integer(c_int) :: code
      end function
      ! Says that the next loop with a schedule of the run-time's (dynamic, guided, runtime) that
      ! the calling thread starts, or the first one of the next team that it starts, is loop id.
      ! homenode run --schedule deals loops with one id alike, wherever they are in the source. The
      ! id holds for one loop. HN_IDLE: homenode does not hand out loops.
      function hn_loop(id) &
         bind(c) result(code)
         import
         integer(c_int32_t), value :: id
         integer(c_int) :: code
      end function
   end interface

   interface hn_distribute
      procedure :: distribute_r4, distribute_r8, distribute_i4, distribute_i8, distribute_c8
   end interface
   interface hn_range
      procedure :: range_i4, range_i8
   end interface
   interface hn_next
      procedure :: next_i4, next_i8
   end interface

contains

   ! The characters of a text of hn_message or hn_last_error.
   function hn_text(text) result(string)
      type(c_ptr), intent(in) :: text
      character(len=:), allocatable :: string
      ! Longer than any text of homenode's.
      integer, parameter :: longest = 4096
      character(kind=c_char), pointer :: letters(:)
      integer :: i, n
      call c_f_pointer(text, letters, [longest])
      n = 0
      do while (n < longest)
         if (letters(n + 1) == achar(0)) exit
         n = n + 1
      end do
      allocate (character(len=n) :: string)
      do i = 1, n
         string(i:i) = letters(i)
      end do
   end function

   ! A spec: chunks of k indices are dealt to the parts in turn.
   pure elemental function hn_cyclic(k) result(spec)
      integer, intent(in) :: k
      integer :: spec
      spec = k
   end function

   ! Distributes an array of any rank. Dimensions are Fortran's: spec(1) is of the first one, whose
   ! elements are neighbours. The array is contiguous. See hn_distribute in homenode.h.
   function distribute_r4(array, spec, over, handle) result(code)
      real(c_float), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 4, spec, over, handle)
   end function
   function distribute_r8(array, spec, over, handle) result(code)
      real(c_double), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 8, spec, over, handle)
   end function
   function distribute_i4(array, spec, over, handle) result(code)
      integer(c_int32_t), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 4, spec, over, handle)
   end function
   function distribute_i8(array, spec, over, handle) result(code)
      integer(c_int64_t), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 8, spec, over, handle)
   end function
   function distribute_c8(array, spec, over, handle) result(code)
      complex(c_double_complex), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 16, spec, over, handle)
   end function

   function distribute_any(address, extents, element, spec, over, handle) result(code)
      type(c_ptr), intent(in) :: address
      integer, intent(in) :: extents(:), element, spec(:), over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      integer :: n
      n = size(extents)
      code = HN_EINVAL
      if (size(spec) /= n) return
      code = hn_distribute_c(address, int(extents(n:1:-1), c_size_t), int(element, c_size_t), int(n, c_int32_t), &
                             int(spec(n:1:-1), c_int64_t), int(over, c_int32_t), handle)
   end function

   ! Distributes the array of handle anew. spec(1) is of the first dimension.
   function hn_redistribute(handle, spec, over) result(code)
      type(hn_distribution), intent(inout) :: handle
      integer, intent(in) :: spec(:), over
      integer(c_int) :: code
      code = HN_EINVAL
      if (size(spec) /= handle%dims) return
      code = hn_redistribute_c(handle, int(spec(size(spec):1:-1), c_int64_t), int(over, c_int32_t))
   end function

   ! Allocates a distributed array in which no page has elements of two parts. Its address is
   ! handle%address; the first dimension has handle%leading elements:
   ! call c_f_pointer(handle%address, a, [int(handle%leading), n])
   function hn_alloc_padded(extents, element, spec, over, handle) result(code)
      integer, intent(in) :: extents(:), element, spec(:), over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      integer :: n
      n = size(extents)
      code = HN_EINVAL
      if (size(spec) /= n) return
      code = hn_alloc_padded_c(int(extents(n:1:-1), c_size_t), int(element, c_size_t), int(n, c_int32_t), &
                               int(spec(n:1:-1), c_int64_t), int(over, c_int32_t), handle)
   end function

   ! The calling thread's number and the number of threads. Compile this file with the same option
   ! for OpenMP as the program.
   subroutine this_thread(thread, team)
!$    use omp_lib, only: omp_get_num_threads, omp_get_thread_num
      integer(c_int32_t), intent(out) :: thread, team
      thread = 0
      team = 1
!$    thread = int(omp_get_thread_num(), c_int32_t)
!$    team = int(omp_get_num_threads(), c_int32_t)
   end subroutine

   ! The calling thread's range of dimension dim (from 1): low to high, both included. high is below
   ! low where the range is empty. See hn_range in homenode.h.
   function range_i4(handle, dim, low, high) result(code)
      type(hn_distribution), intent(in) :: handle
      integer, intent(in) :: dim
      integer(c_int32_t), intent(out) :: low, high
      integer(c_int64_t) :: wide_low, wide_high
      integer(c_int) :: code
      code = range_i8(handle, dim, wide_low, wide_high)
      low = int(wide_low, c_int32_t)
      high = int(wide_high, c_int32_t)
   end function
   function range_i8(handle, dim, low, high) result(code)
      type(hn_distribution), intent(in) :: handle
      integer, intent(in) :: dim
      integer(c_int64_t), intent(out) :: low, high
      integer(c_int) :: code
      integer(c_int32_t) :: thread, team
      integer(c_size_t) :: from, to
      call this_thread(thread, team)
      code = hn_range_of(handle, handle%dims - int(dim, c_int32_t), thread, team, from, to)
      low = from + 1
      high = to
   end function

   ! The calling thread's next range of dimension dim (from 1): low to high, both included. cursor
   ! is 0 before the first call. HN_END: there is no further range. See hn_next in homenode.h.
   function next_i4(handle, dim, cursor, low, high) result(code)
      type(hn_distribution), intent(in) :: handle
      integer, intent(in) :: dim
      integer(c_int64_t), intent(inout) :: cursor
      integer(c_int32_t), intent(out) :: low, high
      integer(c_int64_t) :: wide_low, wide_high
      integer(c_int) :: code
      code = next_i8(handle, dim, cursor, wide_low, wide_high)
      low = int(wide_low, c_int32_t)
      high = int(wide_high, c_int32_t)
   end function
   function next_i8(handle, dim, cursor, low, high) result(code)
      type(hn_distribution), intent(in) :: handle
      integer, intent(in) :: dim
      integer(c_int64_t), intent(inout) :: cursor
      integer(c_int64_t), intent(out) :: low, high
      integer(c_int) :: code
      integer(c_int32_t) :: thread, team
      integer(c_size_t) :: from, to
      call this_thread(thread, team)
      from = 0
      to = 0
      code = hn_next_of(handle, handle%dims - int(dim, c_int32_t), thread, team, cursor, from, to)
      low = from + 1
      high = to
   end function

   ! Binds the calling thread to the node of its part. See hn_bind_share in homenode.h.
   function hn_bind_share(handle) result(code)
      type(hn_distribution), intent(in) :: handle
      integer(c_int) :: code
      integer(c_int32_t) :: thread, team
      call this_thread(thread, team)
      code = hn_bind_share_of(handle, thread, team)
   end function
end module
