! nas-mg: V-cycles of multigrid for the Poisson equation on a cube with periodic boundaries.
!
! After the specification: D. Bailey et al., The NAS Parallel Benchmarks, RNR-94-007 (March 1994),
! and NAS-95-020 (NPB 2.0) for class W; what this rests on is said in ../README.md. Löf, Nordén and
! Holmgren use the grid 256^3.
!
! Placement. The main arrays are u (solution), v (right-hand side) and r (residual); u and r hold
! all levels. With `--init parallel` each thread clears, on every level, the planes that it computes
! (one static schedule over the third index); with `--init serial` the initial thread clears all of
! them. With `--init npb` first touch is that of NPB 3.0's OpenMP version (github.com/
! benchmark-subsetting/NPB3.0-omp-C at 96816312, MG/mg.c): zero3 clears u and v on the finest level,
! its static schedule covers the ghost planes too, and r and the coarse levels are first touched by
! the loops that compute them. The benchmark's untimed first round runs in all cases after that, so
! it moves nothing. `--next-touch` is asked at the top of the
! first timed round, where Löf put it, so the cost falls into it.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
program nas_mg
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int32_t, c_loc, c_size_t, c_sizeof
   use, intrinsic :: iso_fortran_env, only: error_unit
   use homenode, only: hn_iteration, hn_next_touch
   use kernel_common
   use mg_charges, only: charges, find_charges, set_charges
   use mg_grids, only: ALL_PLANES_SHARED, INITIAL_THREAD, PLANE_OWNERS, clear, clear_levels, dp, hierarchy, make_hierarchy
   use mg_stencils, only: interpolate_to, norm, residual, residual_in_place, restrict_to, smooth
   implicit none

   interface
      function nas_mg_parse(count, packed, options) bind(c, name='nas_mg_parse') result(status)
         import :: c_char, c_int, kernel_options
         integer(c_int), value :: count
         character(kind=c_char), intent(in) :: packed(*)
         type(kernel_options), intent(out) :: options
         integer(c_int) :: status
      end function
      function nas_mg_verify(norm, expected) bind(c, name='nas_mg_verify') result(status)
         import :: c_double, c_int
         real(c_double), value :: norm, expected
         integer(c_int) :: status
      end function
      function nas_mg_not_verified(size_is_standard, norm) bind(c, name='nas_mg_not_verified') result(status)
         import :: c_double, c_int
         integer(c_int), value :: size_is_standard
         real(c_double), value :: norm
         integer(c_int) :: status
      end function
   end interface

   type(kernel_options) :: options
   type(hierarchy) :: grids
   type(charges) :: right_hand_side
   real(dp), allocatable, target :: u(:), v(:), r(:)
   real(dp) :: smoother(0:2), result_norm
   integer :: clearing ! who clears a grid
   integer(c_int) :: status

   status = nas_mg_parse(command_argument_count(), packed_arguments(), options)
   if (status /= KERNEL_RUN) call leave(status)
   grids = make_hierarchy(int(options%size))
   smoother = smoother_of_class(options%class_letter)
   clearing = merge(ALL_PLANES_SHARED, PLANE_OWNERS, options%npb_init /= 0)
   call allocate_grids()
   right_hand_side = find_charges(int(options%size))
   call warm_up()
   call iterate()
   result_norm = norm(r, grids%points(grids%levels))
   deallocate (u, v, r)
   call leave(judge(result_norm))

contains

   ! The specification's S(a) for the smaller classes and S(b) for class B and up. A size of one's
   ! own takes S(a).
   pure function smoother_of_class(letter) result(c)
      integer(c_int32_t), intent(in) :: letter
      real(dp) :: c(0:2)
      if (letter == iachar('B')) then
         c = [-3.0_dp/17.0_dp, 1.0_dp/33.0_dp, -1.0_dp/61.0_dp]
      else
         c = [-3.0_dp/8.0_dp, 1.0_dp/32.0_dp, -1.0_dp/64.0_dp]
      end if
   end function

   subroutine allocate_grids()
      integer :: failure
      allocate (u(grids%total), r(grids%total), v(int(grids%points(grids%levels), kind(grids%total))**3), stat=failure)
      if (failure /= 0) then
         write (error_unit, '(a)') 'nas-mg: no memory for the grids: try a smaller --class or --size'
         call leave(2_c_int)
      end if
      if (options%round_robin /= 0) then
         call kernel_deal_pages(c_loc(u), size(u, kind=c_size_t)*c_sizeof(u(1)))
         call kernel_deal_pages(c_loc(v), size(v, kind=c_size_t)*c_sizeof(v(1)))
         call kernel_deal_pages(c_loc(r), size(r, kind=c_size_t)*c_sizeof(r(1)))
      end if
   end subroutine

   ! First touch of everything, the benchmark's untimed round, and back to the start.
   subroutine warm_up()
      integer :: n, who
      who = merge(INITIAL_THREAD, clearing, options%serial_init /= 0)
      n = grids%points(grids%levels)
      if (options%npb_init /= 0) then
         call clear(u, n, who)
      else
         call clear_levels(u, grids, who)
         call clear_levels(r, grids, who)
      end if
      call set_charges(v, n, right_hand_side, who)
      call residual(u, v, r, n)
      call v_cycle()
      call residual(u, v, r, n)
      call clear(u, n, who)
      call residual(u, v, r, n)
   end subroutine

   subroutine iterate()
      integer(c_int32_t) :: k
      integer(c_int) :: ignored
      do k = 0, options%iterations - 1
         call kernel_mark(k)
         ignored = hn_iteration(k)
         if (k == 0 .and. options%next_touch /= 0) call mark_next_touch()
         call v_cycle()
         call residual(u, v, r, grids%points(grids%levels))
      end do
      call kernel_mark(options%iterations)
      ignored = hn_iteration(options%iterations)
   end subroutine

   subroutine mark_next_touch()
      call kernel_note_next_touch(hn_next_touch(c_loc(u), size(u, kind=c_size_t)*c_sizeof(u(1))))
      call kernel_note_next_touch(hn_next_touch(c_loc(v), size(v, kind=c_size_t)*c_sizeof(v(1))))
      call kernel_note_next_touch(hn_next_touch(c_loc(r), size(r, kind=c_size_t)*c_sizeof(r(1))))
   end subroutine

   ! u = u + M r: residuals down to the coarsest grid, corrections up to the finest, where the
   ! result is added to u.
   subroutine v_cycle()
      integer :: k, top
      top = grids%levels
      do k = top, 2, -1
         call restrict_to(r(grids%first(k)), grids%points(k), r(grids%first(k - 1)), grids%points(k - 1))
      end do
      call clear(u(grids%first(1)), grids%points(1), clearing)
      call smooth(r(grids%first(1)), u(grids%first(1)), grids%points(1), smoother)
      do k = 2, top - 1
         call clear(u(grids%first(k)), grids%points(k), clearing)
         call interpolate(k)
         call residual_in_place(u(grids%first(k)), r(grids%first(k)), grids%points(k))
         call smooth(r(grids%first(k)), u(grids%first(k)), grids%points(k), smoother)
      end do
      call interpolate(top)
      call residual(u, v, r, grids%points(top))
      call smooth(r, u, grids%points(top), smoother)
   end subroutine

   subroutine interpolate(k)
      integer, intent(in) :: k
      call interpolate_to(u(grids%first(k - 1)), grids%points(k - 1), u(grids%first(k)), grids%points(k))
   end subroutine

   function judge(value) result(status)
      real(dp), intent(in) :: value
      integer(c_int) :: status
      real(dp) :: expected
      if (options%class_letter == 0 .or. options%standard_iterations == 0) then
         status = nas_mg_not_verified(merge(0_c_int, 1_c_int, options%class_letter == 0), value)
         return
      end if
      select case (achar(options%class_letter))
      case ('S'); expected = 0.5307707005734e-4_dp
      case ('W'); expected = 0.6467329375339e-5_dp
      case ('A'); expected = 0.2433365309069e-5_dp
      case default; expected = 0.1800564401355e-5_dp
      end select
      status = nas_mg_verify(value, expected)
   end function
end program
