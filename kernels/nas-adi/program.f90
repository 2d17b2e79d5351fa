! The program that NAS BT and SP are, but for how a time step solves: that is module `stepping` of
! each.
!
! Placement. Main arrays are u, rhs, forcing and the derived quantities p. Planes of constant k
! belong to threads in all loops but the solves along k, which deal planes of constant j: there the
! whole field changes hands, twice a step (Nikolopoulos et al. call it the phase change of BT and
! SP). With `--init parallel` each thread clears the planes of constant k that it computes; with
! `--init serial` the initial thread clears all. The benchmark's untimed first step comes after that
! in both cases, so it moves nothing. `--next-touch` is asked at the top of the first timed step.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module adi_program
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int32_t, c_loc, c_size_t, c_sizeof
   use, intrinsic :: ieee_arithmetic, only: ieee_is_nan
   use, intrinsic :: iso_fortran_env, only: error_unit
   use homenode, only: hn_iteration, hn_next_touch
   use kernel_common
   use adi_grid
   use adi_rhs, only: make_forcing, right_hand_side
   use official, only: official_norms, time_step
   use stepping, only: step
   implicit none
   private
   public :: run

   interface
      function adi_parse(count, packed, options, letter) bind(c, name='adi_parse') result(status)
         import :: c_char, c_int, kernel_options
         integer(c_int), value :: count
         character(kind=c_char), intent(in) :: packed(*)
         type(kernel_options), intent(out) :: options
         integer(c_int), intent(out) :: letter
         integer(c_int) :: status
      end function
      function adi_verify(error) bind(c, name='adi_verify') result(status)
         import :: c_double, c_int
         real(c_double), value :: error
         integer(c_int) :: status
      end function
      function adi_not_verified(size_is_standard, norm) bind(c, name='adi_not_verified') result(status)
         import :: c_double, c_int
         integer(c_int), value :: size_is_standard
         real(c_double), value :: norm
         integer(c_int) :: status
      end function
   end interface

   type(kernel_options) :: options
   real(dp), allocatable, target :: u(:), rhs(:), forcing(:), p(:)

contains

   subroutine run()
      type(grid) :: g
      integer(c_int) :: letter, status
      real(dp) :: norms(5, 2)
      status = adi_parse(command_argument_count(), packed_arguments(), options, letter)
      if (status /= KERNEL_RUN) call leave(status)
      g = make_grid(int(options%size), time_step(achar(letter)))
      call allocate_fields(int(g%ld, c_size_t)*g%n*g%n)
      call start(g)
      call iterate(g)
      call right_hand_side(g, u, p, forcing, rhs)
      norms(:, 1) = norm(g, rhs)/g%dt
      rhs = u
      call set_exact(u, g)
      rhs = rhs - u
      norms(:, 2) = norm(g, rhs)
      deallocate (u, rhs, forcing, p)
      call leave(judge(norms))
   end subroutine

   subroutine allocate_fields(points)
      integer(c_size_t), intent(in) :: points
      integer :: failure
      allocate (u(5*points), rhs(5*points), forcing(5*points), p(PRIMITIVES*points), stat=failure)
      if (failure /= 0) then
         write (error_unit, '(a)') 'no memory for the fields: try a smaller --class or --size'
         call leave(2_c_int)
      end if
      if (options%round_robin /= 0) then
         call kernel_deal_pages(c_loc(u), size(u, kind=c_size_t)*c_sizeof(u(1)))
         call kernel_deal_pages(c_loc(rhs), size(rhs, kind=c_size_t)*c_sizeof(u(1)))
         call kernel_deal_pages(c_loc(forcing), size(forcing, kind=c_size_t)*c_sizeof(u(1)))
         call kernel_deal_pages(c_loc(p), size(p, kind=c_size_t)*c_sizeof(u(1)))
      end if
   end subroutine

   ! First touch of everything, forcing, the benchmark's untimed step, and back to the start.
   subroutine start(g)
      type(grid), intent(in) :: g
      logical :: serial
      serial = options%serial_init /= 0
      call clear(u, g, 5, serial)
      call clear(rhs, g, 5, serial)
      call clear(forcing, g, 5, serial)
      call clear(p, g, PRIMITIVES, serial)
      call set_exact(u, g)
      call make_forcing(g, u, p, forcing)
      call set_initial(u, g)
      call step(g, u, p, forcing, rhs)
      call set_initial(u, g)
   end subroutine

   subroutine iterate(g)
      type(grid), intent(in) :: g
      integer(c_int32_t) :: k
      integer(c_int) :: ignored
      do k = 0, options%iterations - 1
         call kernel_mark(k)
         ignored = hn_iteration(k)
         if (k == 0 .and. options%next_touch /= 0) call mark_next_touch()
         call step(g, u, p, forcing, rhs)
      end do
      call kernel_mark(options%iterations)
      ignored = hn_iteration(options%iterations)
   end subroutine

   subroutine mark_next_touch()
      call kernel_note_next_touch(hn_next_touch(c_loc(u), size(u, kind=c_size_t)*c_sizeof(u(1))))
      call kernel_note_next_touch(hn_next_touch(c_loc(rhs), size(rhs, kind=c_size_t)*c_sizeof(u(1))))
      call kernel_note_next_touch(hn_next_touch(c_loc(forcing), size(forcing, kind=c_size_t)*c_sizeof(u(1))))
      call kernel_note_next_touch(hn_next_touch(c_loc(p), size(p, kind=c_size_t)*c_sizeof(u(1))))
   end subroutine

   ! Root mean square of each quantity over the inner points (faces are zero). One sum a plane,
   ! added in order: the same for any number of threads.
   function norm(g, x) result(value)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: x(g%ld, 5, g%n, g%n)
      real(dp) :: value(5), planes(5, g%n)
      integer :: k, m
      !$omp parallel do schedule(static) default(none) shared(x, g, planes) private(m)
      do k = 2, g%n - 1
         do m = 1, 5
            planes(m, k) = sum(x(2:g%n - 1, m, 2:g%n - 1, k)**2)
         end do
      end do
      value = sqrt(sum(planes(:, 2:g%n - 1), dim=2)/real(g%n - 2, dp)**3)
   end function

   function judge(norms) result(status)
      real(dp), intent(in) :: norms(5, 2)
      integer(c_int) :: status
      real(dp) :: expected(5, 2), error
      if (options%class_letter == 0 .or. options%standard_iterations == 0) then
         status = adi_not_verified(merge(0_c_int, 1_c_int, options%class_letter == 0), norms(1, 1))
         return
      end if
      expected = official_norms(achar(options%class_letter))
      error = maxval(abs(norms - expected)/expected)
      if (any(ieee_is_nan(norms))) error = huge(error) ! maxval passes over a NaN
      status = adi_verify(error)
   end function
end module
