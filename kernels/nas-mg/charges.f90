! The right-hand side: +1 at the ten largest numbers of a random field over the finest grid, -1 at
! the ten smallest.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007. The benchmark keeps the random field in v itself
! and draws it twice; here one row of it is enough and the places are found once, so that v's first
! touch is only that of `clear`.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module mg_charges
   use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
   use kernel_common, only: nas_random_fill
   use mg_grids, only: clear, dp, exchange_ghosts, most_points, wrap_plane
   implicit none
   private
   public :: charges, find_charges, set_charges

   integer, parameter :: many = 10
   integer(c_int64_t), parameter :: seed = 314159265_c_int64_t

   type :: charges
      integer :: largest(3, many), smallest(3, many)
   end type

   ! The `many` highest scores so far, the lowest of them first.
   type :: ranking
      real(dp) :: score(many) = -huge(1.0_dp)
      integer :: place(3, many) = 0
   end type

contains

   function find_charges(edge) result(found)
      integer, intent(in) :: edge
      type(charges) :: found
      type(ranking) :: high, low
      real(c_double) :: row(most_points)
      integer(c_int64_t) :: state
      integer :: i1, i2, i3
      state = seed
      do i3 = 1, edge
         do i2 = 1, edge
            call nas_random_fill(state, edge, row)
            do i1 = 1, edge
               if (row(i1) > high%score(1)) call enter(high, row(i1), [i1, i2, i3])
               if (-row(i1) > low%score(1)) call enter(low, -row(i1), [i1, i2, i3])
            end do
         end do
      end do
      found%largest = high%place
      found%smallest = low%place
   end function

   ! Replaces the lowest of the ranking and moves the newcomer up to its rank.
   pure subroutine enter(r, score, place)
      type(ranking), intent(inout) :: r
      real(dp), intent(in) :: score
      integer, intent(in) :: place(3)
      integer :: k
      k = 1
      do while (k < many)
         if (r%score(k + 1) >= score) exit
         r%score(k) = r%score(k + 1)
         r%place(:, k) = r%place(:, k + 1)
         k = k + 1
      end do
      r%score(k) = score
      r%place(:, k) = place
   end subroutine

   ! v = the charges. Places count from 1 without ghosts.
   subroutine set_charges(v, n, c, who)
      integer, intent(in) :: n
      real(dp), intent(out) :: v(n, n, n)
      type(charges), intent(in) :: c
      integer, intent(in) :: who
      integer :: k
      call clear(v, n, who)
      do k = 1, many
         v(c%largest(1, k) + 1, c%largest(2, k) + 1, c%largest(3, k) + 1) = 1
         v(c%smallest(1, k) + 1, c%smallest(2, k) + 1, c%smallest(3, k) + 1) = -1
      end do
      do k = 2, n - 1
         call wrap_plane(v(:, :, k), n)
      end do
      v(:, :, 1) = v(:, :, n - 1)
      v(:, :, n) = v(:, :, 2)
   end subroutine
end module
