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

   ! A node: what of it this process may use.
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
      ! Round number (from 0) of the program's outer loop begins. Call it from one thread, outside
      ! of parallel regions or inside master/single, at the top of the loop; and once more with the
      ! number of rounds after the loop, which ends the last round.
      function hn_iteration(number) bind(c) result(code)
         import
         integer(c_int32_t), value :: number
         integer(c_int) :: code
      end function
      ! Each whole page in [address, address + length) goes to the node of the thread that touches
      ! it next. Contents are kept. Memory that cannot be moved safely (shared, file-backed, pinned)
      ! stays where it is.
      function hn_next_touch(address, length) bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int) :: code
      end function
      ! The calling thread runs on cpu alone from now on.
      function hn_bind_cpu(cpu) bind(c) result(code)
         import
         integer(c_int32_t), value :: cpu
         integer(c_int) :: code
      end function
      ! The calling thread runs on the CPUs of node alone from now on.
      function hn_bind_node(node) bind(c) result(code)
         import
         integer(c_int32_t), value :: node
         integer(c_int) :: code
      end function
      ! The calling thread runs where it might before it was first bound by the two functions above.
      function hn_unbind() bind(c) result(code)
         import
         integer(c_int) :: code
      end function
      ! The CPU and the node that run the caller. Either pointer may be null. A thread that is not
      ! bound may be elsewhere when the answer arrives.
      function hn_here(cpu, node) bind(c) result(code)
         import
         integer(c_int32_t), intent(out), optional :: cpu
         integer(c_int32_t), intent(out), optional :: node
         integer(c_int) :: code
      end function
      ! Pages that [address, address + length) touches and that are not in memory yet come from node
      ! when they are first touched, whoever touches them, while the node has room; with
      ! HN_FIRST_TOUCH from the toucher's node, as without homenode. Pages that are in memory stay.
      ! What a program places itself, homenode run leaves alone.
      function hn_place(address, length, node) bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), value :: node
         integer(c_int) :: code
      end function
      ! Pages that [address, address + length) touches and that are in memory go to node. Contents
      ! are kept. HN_PARTIAL: not all are there afterwards; found, which may be null, tells how
      ! many. What a program moves itself, homenode run leaves alone.
      function hn_move(address, length, node, found) bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), value :: node
         type(hn_placement), intent(out), optional :: found
         integer(c_int) :: code
      end function
      ! Counts the pages that [address, address + length) touches by where they are: HN_OK when all
      ! are on node, HN_PARTIAL when not. found may be null.
      function hn_verify(address, length, node, found) bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), value :: node
         type(hn_placement), intent(out), optional :: found
         integer(c_int) :: code
      end function
      ! The node of each page that [address, address + length) touches, or HN_ABSENT or HN_UNKNOWN,
      ! into nodes, which has room for capacity numbers; the number of pages into pages, which may
      ! be null. HN_ERANGE: there are more pages than room, the first capacity are answered. With
      ! capacity 0, nodes may be null: asks for the number alone.
      function hn_where(address, length, nodes, capacity, pages) bind(c) result(code)
         import
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int32_t), intent(out), optional :: nodes(*)
         integer(c_size_t), value :: capacity
         integer(c_size_t), intent(out), optional :: pages
         integer(c_int) :: code
      end function
      ! Numbers of the nodes with memory or CPUs that this process may use, ascending (they may have
      ! gaps), into nodes, which has room for capacity of them; how many there are into count,
      ! which may be null. HN_ERANGE: there are more than room. With capacity 0, nodes may be null:
      ! asks for the number alone.
      function hn_nodes(nodes, capacity, count) bind(c) result(code)
         import
         integer(c_int32_t), intent(out), optional :: nodes(*)
         integer(c_size_t), value :: capacity
         integer(c_size_t), intent(out), optional :: count
         integer(c_int) :: code
      end function
      ! What is known of a node.
      function hn_node_info(number, node) bind(c) result(code)
         import
         integer(c_int32_t), value :: number
         type(hn_node), intent(out), optional :: node
         integer(c_int) :: code
      end function
      ! Numbers of the CPUs of node that this process may use, ascending: as hn_nodes.
      function hn_node_cpus(node, cpus, capacity, count) bind(c) result(code)
         import
         integer(c_int32_t), value :: node
         integer(c_int32_t), intent(out), optional :: cpus(*)
         integer(c_size_t), value :: capacity
         integer(c_size_t), intent(out), optional :: count
         integer(c_int) :: code
      end function
      ! The system's distance from CPUs of one node to memory of another: 10 is local, more is
      ! farther.
      function hn_distance(from, to, distance) bind(c) result(code)
         import
         integer(c_int32_t), value :: from
         integer(c_int32_t), value :: to
         integer(c_int32_t), intent(out), optional :: distance
         integer(c_int) :: code
      end function
      ! Text of a return code; never null, never to be freed.
      function hn_message(code) bind(c) result(text)
         import
         integer(c_int32_t), value :: code
         type(c_ptr) :: text
      end function
      ! What the last of these functions that failed in this thread tried, on what, what the system
      ! said, and what to do; empty if none has failed. Never null, never to be freed; changed by
      ! the next call that fails in this thread.
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
