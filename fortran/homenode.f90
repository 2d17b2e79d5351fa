! homenode: tell the run-time system what it cannot see. See include/homenode.h for what each call means.
! SPDX-License-Identifier: MIT OR Apache-2.0
module homenode
   use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_size_t, c_ptr
   implicit none
   private
   public :: hn_iteration, hn_next_touch, HN_OK, HN_IDLE, HN_EINVAL

   integer(c_int), parameter :: HN_OK = 0, HN_IDLE = 1, HN_EINVAL = 2

   interface
      ! Round `number` (from 0) of the outer loop begins.
      function hn_iteration(number) bind(c, name='hn_iteration') result(code)
         import :: c_int, c_int32_t
         integer(c_int32_t), value :: number
         integer(c_int) :: code
      end function
      ! Whole pages of [address, address + length) go to whoever touches them next. Pass c_loc(array), in bytes.
      function hn_next_touch(address, length) bind(c, name='hn_next_touch') result(code)
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value :: address
         integer(c_size_t), value :: length
         integer(c_int) :: code
      end function
   end interface
end module
