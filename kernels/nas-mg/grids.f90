! All levels of a multigrid hierarchy in one array, the finest first, as in the benchmark: Löf's
! remark that all levels use the same array of unknowns is about this. Level k has 2^k points an
! edge and one ghost point at each side.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module mg_grids
   use, intrinsic :: iso_fortran_env, only: int64, real64
   implicit none
   private
   public :: hierarchy, make_hierarchy, clear, clear_levels, exchange_ghosts, wrap_plane, dp, most_points
   public :: INITIAL_THREAD, PLANE_OWNERS, ALL_PLANES_SHARED

   integer, parameter :: dp = real64
   integer, parameter :: most_levels = 10
   integer, parameter :: most_points = 2**most_levels + 2

   ! Who clears a grid: the initial thread alone; the threads that own the planes in every other
   ! loop (ghost planes go with their neighbours); or all threads, by a static schedule over all
   ! planes with ghosts, as NPB 3.0's zero3.
   integer, parameter :: INITIAL_THREAD = 0, PLANE_OWNERS = 1, ALL_PLANES_SHARED = 2

   type :: hierarchy
      integer :: levels                       ! the finest; the coarsest is 1
      integer :: points(most_levels)          ! an edge, ghosts included
      integer(int64) :: first(most_levels)    ! index of a level's first element
      integer(int64) :: total                 ! elements of all levels
   end type

contains

   pure function make_hierarchy(edge) result(h)
      integer, intent(in) :: edge
      type(hierarchy) :: h
      integer :: k
      h%levels = trailz(edge)
      h%total = 0
      do k = h%levels, 1, -1
         h%points(k) = 2**k + 2
         h%first(k) = h%total + 1
         h%total = h%total + int(h%points(k), int64)**3
      end do
   end function

   ! x = 0.
   subroutine clear(x, n, who)
      integer, intent(in) :: n
      real(dp), intent(out) :: x(n, n, n)
      integer, intent(in) :: who
      integer :: i3
      if (who == ALL_PLANES_SHARED) then
         !$omp parallel do schedule(static) default(none) shared(x, n)
         do i3 = 1, n
            x(:, :, i3) = 0
         end do
         return
      end if
      !$omp parallel do schedule(static) if(who == PLANE_OWNERS) default(none) shared(x, n)
      do i3 = 2, n - 1
         if (i3 == 2) x(:, :, 1) = 0
         x(:, :, i3) = 0
         if (i3 == n - 1) x(:, :, n) = 0
      end do
   end subroutine

   subroutine clear_levels(x, h, who)
      type(hierarchy), intent(in) :: h
      real(dp), intent(out) :: x(h%total)
      integer, intent(in) :: who
      integer :: k
      do k = h%levels, 1, -1
         call clear(x(h%first(k)), h%points(k), who)
      end do
   end subroutine

   ! Periodic in the first two directions. A plane is its thread's own business, so this needs no
   ! barrier.
   pure subroutine wrap_plane(x, n)
      integer, intent(in) :: n
      real(dp), intent(inout) :: x(n, n)
      integer :: i2
      do i2 = 2, n - 1
         x(1, i2) = x(n - 1, i2)
         x(n, i2) = x(2, i2)
      end do
      x(:, 1) = x(:, n - 1)
      x(:, n) = x(:, 2)
   end subroutine

   ! Periodic in the third direction. Called inside a parallel region, after a barrier.
   subroutine exchange_ghosts(x, n)
      integer, intent(in) :: n
      real(dp), intent(inout) :: x(n, n, n)
      integer :: i2
      !$omp do schedule(static)
      do i2 = 1, n
         x(:, i2, 1) = x(:, i2, n - 1)
         x(:, i2, n) = x(:, i2, 2)
      end do
      !$omp end do
   end subroutine
end module
