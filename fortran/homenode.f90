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
   use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
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
   public :: HN_ABSENT
   public :: HN_UNKNOWN
   public :: HN_FIRST_TOUCH
   public :: hn_node
   public :: hn_placement
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

   ! hn_where: the page is not in memory (never written, or swapped out)
   integer(c_int), parameter :: HN_ABSENT = -1

   ! hn_where: the system does not say where the page is
   integer(c_int), parameter :: HN_UNKNOWN = -2

   ! hn_place: the node of the thread that touches a page first, as without homenode
   integer(c_int), parameter :: HN_FIRST_TOUCH = -1

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

   interface
      ! Says that round number (from 0) of the program's outer loop begins. Call it at the top of
      ! the loop, from one thread, outside of parallel regions or inside master/single. Call it once
      ! more after the loop, with the number of rounds: that ends the last round.
      function hn_iteration(number) bind(c) result(code)
         import
         integer(c_int32_t), value :: number
         integer(c_int) :: code
      end function
      ! Asks homenode to move each whole page in [address, address + length) to the node of the
      ! thread that touches the page next. The contents stay the same. Memory that cannot be moved
      ! safely (shared, file-backed, pinned) stays where it is.
      function hn_next_touch(address, length) bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int) :: code
      end function
      ! Binds the calling thread to cpu.
      function hn_bind_cpu(cpu) bind(c) result(code)
         import
         integer(c_int32_t), value :: cpu
         integer(c_int) :: code
      end function
      ! Binds the calling thread to the CPUs of node.
      function hn_bind_node(node) bind(c) result(code)
         import
         integer(c_int32_t), value :: node
         integer(c_int) :: code
      end function
      ! Undoes hn_bind_cpu and hn_bind_node: the calling thread may run where it might before the
      ! first of these calls.
      function hn_unbind() bind(c) result(code)
         import
         integer(c_int) :: code
      end function
      ! Stores the CPU and the node that run the caller. Either pointer may be null. A thread that
      ! is not bound may have moved to another CPU when the call returns.
      function hn_here(cpu, node) bind(c) result(code)
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
      function hn_place(address, length, node) bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), value :: node
         integer(c_int) :: code
      end function
      ! Moves the pages of [address, address + length) that are in memory to node. The contents stay
      ! the same. HN_PARTIAL: some pages are elsewhere afterwards. found receives the counts and may
      ! be null. homenode run does not move memory that the program moved with this call.
      function hn_move(address, length, node, found) bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), value :: node
         type(hn_placement), intent(out), optional :: found
         integer(c_int) :: code
      end function
      ! Counts the pages of [address, address + length) by where they are. HN_OK: all are on node.
      ! HN_PARTIAL: some are not. found receives the counts and may be null.
      function hn_verify(address, length, node, found) bind(c) result(code)
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
      function hn_where(address, length, nodes, capacity, pages) bind(c) result(code)
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
      function hn_nodes(nodes, capacity, count) bind(c) result(code)
         import
         integer(c_int32_t), intent(out), optional :: nodes(*)
         integer(c_size_t), value :: capacity
         integer(c_size_t), intent(out), optional :: count
         integer(c_int) :: code
      end function
      ! Stores what this process may use of node number in node.
      function hn_node_info(number, node) bind(c) result(code)
         import
         integer(c_int32_t), value :: number
         type(hn_node), intent(out), optional :: node
         integer(c_int) :: code
      end function
      ! Stores the numbers of the CPUs of node that this process may use in cpus, ascending. Its
      ! capacity and count work as those of hn_nodes.
      function hn_node_cpus(node, cpus, capacity, count) bind(c) result(code)
         import
         integer(c_int32_t), value :: node
         integer(c_int32_t), intent(out), optional :: cpus(*)
         integer(c_size_t), value :: capacity
         integer(c_size_t), intent(out), optional :: count
         integer(c_int) :: code
      end function
      ! Stores in distance the system's distance from one node's CPUs (from) to another node's
      ! memory (to). 10 is local; a larger number is farther.
      function hn_distance(from, to, distance) bind(c) result(code)
         import
         integer(c_int32_t), value :: from
         integer(c_int32_t), value :: to
         integer(c_int32_t), intent(out), optional :: distance
         integer(c_int) :: code
      end function
      ! Returns the text of a return code. It is never null. Do not free it.
      function hn_message(code) bind(c) result(text)
         import
         integer(c_int32_t), value :: code
         type(c_ptr) :: text
      end function
      ! Describes the last failure of these functions in the calling thread: what was tried, on
      ! what, what the system said, and what to do. The text is empty if nothing has failed, and
      ! never null. Do not free it. The next call that fails in this thread changes it.
      function hn_last_error() bind(c) result(text)
         import
         type(c_ptr) :: text
      end function
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
end module
