! The shared C parts for Fortran kernels: options, times, random numbers. See options.h, report.h
! and nas_random.h.
! SPDX-License-Identifier: MIT OR Apache-2.0
module kernel_common
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int32_t, c_int64_t, c_null_char, c_ptr, c_size_t
   implicit none
   private
   public :: kernel_options, packed_arguments, kernel_deal_pages, kernel_mark, kernel_note_next_touch, leave, &
             nas_random_fill, KERNEL_RUN

   integer(c_int), parameter :: KERNEL_RUN = -1

   ! Mirrors struct kernel_options.
   type, bind(c) :: kernel_options
      integer(c_int64_t) :: size
      integer(c_int32_t) :: iterations, standard_iterations, class_letter, threads
      integer(c_int32_t) :: serial_init, next_touch, json, padded, schedule, round_robin, layout, single, npb_init
   end type

   interface
      subroutine kernel_mark(iteration) bind(c, name='kernel_mark')
         import :: c_int32_t
         integer(c_int32_t), value :: iteration
      end subroutine
      subroutine kernel_note_next_touch(code) bind(c, name='kernel_note_next_touch')
         import :: c_int
         integer(c_int), value :: code
      end subroutine
      ! For --init round-robin, before anything else touches the array.
      subroutine kernel_deal_pages(array, bytes) bind(c, name='kernel_deal_pages')
         import :: c_ptr, c_size_t
         type(c_ptr), value :: array
         integer(c_size_t), value :: bytes
      end subroutine
      ! Fortran 2008 stops with a constant only.
      subroutine leave(status) bind(c, name='exit')
         import :: c_int
         integer(c_int), value :: status
      end subroutine
      subroutine nas_random_fill(state, count, numbers) bind(c, name='nas_random_fill')
         import :: c_double, c_int32_t, c_int64_t
         integer(c_int64_t), intent(inout) :: state
         integer(c_int32_t), value :: count
         real(c_double), intent(out) :: numbers(*)
      end subroutine
   end interface

contains

   ! The command line's arguments, each ended by a NUL, as kernel_parse_packed wants them.
   function packed_arguments() result(packed)
      character(kind=c_char, len=:), allocatable :: packed
      character(len=:), allocatable :: word
      integer :: i, length
      packed = ''
      do i = 1, command_argument_count()
         call get_command_argument(i, length=length)
         allocate (character(len=length) :: word)
         call get_command_argument(i, value=word)
         packed = packed//word//c_null_char
         deallocate (word)
      end do
   end function
end module
