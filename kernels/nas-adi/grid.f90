! What NAS BT and SP share: the grid, its constants, the exact solution, the initial state.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007, chapter on the simulated CFD applications.
!
! A field is x(i, m, j, k): m counts the five conserved quantities (density, momentum in three
! directions, energy), i, j, k the points. Rows along i lie together, so that loops along i are
! vectors; the leading dimension is odd, so that lines along j and k do not fall on one set of a
! cache. Planes of constant k belong to threads.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module adi_grid
   use, intrinsic :: iso_fortran_env, only: real64
   implicit none
   private
   public :: dp, grid, make_grid, exact, set_exact, set_initial, clear
   public :: c1, c2, c1c5, c3c4, c1345, con43, RHO, QS, SQ, SPEED, PRIMITIVES

   integer, parameter :: dp = real64

   ! Gas constants of the specification: c1 = c5 = 1.4, c2 = 0.4, c3 = 0.1, c4 = 1.
   real(dp), parameter :: c1 = 1.4_dp, c2 = 0.4_dp, c3c4 = 0.1_dp
   real(dp), parameter :: c1c5 = c1*c1, c1345 = c1c5*c3c4, con43 = 4.0_dp/3.0_dp

   ! What is derived from the five quantities at each point; 2, 3, 4 are the velocities, as they are
   ! the momenta.
   integer, parameter :: RHO = 1   ! 1 / density
   integer, parameter :: QS = 5    ! half the speed squared
   integer, parameter :: SQ = 6    ! the same times density: kinetic energy
   integer, parameter :: SPEED = 7 ! of sound
   integer, parameter :: PRIMITIVES = 7

   type :: grid
      integer :: n              ! points an edge
      integer :: ld             ! leading dimension
      real(dp) :: h             ! distance of points
      real(dp) :: dt
      real(dp) :: t1, t2        ! 1 / h^2, 1 / (2 h)
      real(dp) :: d(3)          ! second-difference coefficient in each direction
      real(dp) :: dissipation
   end type

   ! The exact solution's coefficients: 1; xi, eta, zeta; their squares, cubes, fourth powers.
   real(dp), parameter :: ce(5, 13) = reshape([ &
      2.00_dp, 1.00_dp, 2.00_dp, 2.00_dp, 5.00_dp, &
      0.00_dp, 0.00_dp, 2.00_dp, 2.00_dp, 4.00_dp, &
      0.00_dp, 0.00_dp, 0.00_dp, 0.00_dp, 3.00_dp, &
      4.00_dp, 0.00_dp, 0.00_dp, 0.00_dp, 2.00_dp, &
      5.00_dp, 1.00_dp, 0.00_dp, 0.00_dp, 0.10_dp, &
      3.00_dp, 2.00_dp, 2.00_dp, 2.00_dp, 0.40_dp, &
      0.50_dp, 3.00_dp, 3.00_dp, 3.00_dp, 0.30_dp, &
      0.02_dp, 0.01_dp, 0.04_dp, 0.03_dp, 0.05_dp, &
      0.01_dp, 0.03_dp, 0.03_dp, 0.05_dp, 0.04_dp, &
      0.03_dp, 0.02_dp, 0.05_dp, 0.04_dp, 0.03_dp, &
      0.50_dp, 0.40_dp, 0.30_dp, 0.20_dp, 0.10_dp, &
      0.40_dp, 0.30_dp, 0.50_dp, 0.10_dp, 0.30_dp, &
      0.30_dp, 0.50_dp, 0.40_dp, 0.30_dp, 0.20_dp], [5, 13])

contains

   pure function make_grid(n, dt) result(g)
      integer, intent(in) :: n
      real(dp), intent(in) :: dt
      type(grid) :: g
      g%n = n
      g%ld = n + 1 - mod(n, 2)
      g%h = 1.0_dp/real(n - 1, dp)
      g%dt = dt
      g%t1 = 1.0_dp/g%h**2
      g%t2 = 0.5_dp/g%h
      g%d = [0.75_dp, 0.75_dp, 1.0_dp]
      g%dissipation = 0.25_dp*maxval(g%d)
   end function

   pure function exact(xi, eta, zeta) result(u)
      real(dp), intent(in) :: xi, eta, zeta
      real(dp) :: u(5)
      u = ce(:, 1) + along(xi, 2) + along(eta, 3) + along(zeta, 4)
   end function

   ! A direction's part of the polynomial; its coefficients are those of `first` and every third
   ! after it.
   pure function along(x, first) result(u)
      real(dp), intent(in) :: x
      integer, intent(in) :: first
      real(dp) :: u(5)
      u = x*(ce(:, first) + x*(ce(:, first + 3) + x*(ce(:, first + 6) + x*ce(:, first + 9))))
   end function

   ! x = 0 by planes, by the threads that own them in all other loops, or by the initial thread
   ! alone.
   subroutine clear(x, g, parts, serial)
      type(grid), intent(in) :: g
      integer, intent(in) :: parts
      real(dp), intent(out) :: x(g%ld, parts, g%n, g%n)
      logical, intent(in) :: serial
      integer :: k
      !$omp parallel do schedule(static) if(.not. serial) default(none) shared(x, g)
      do k = 2, g%n - 1
         if (k == 2) x(:, :, :, 1) = 0
         x(:, :, :, k) = 0
         if (k == g%n - 1) x(:, :, :, g%n) = 0
      end do
   end subroutine

   subroutine set_exact(u, g)
      type(grid), intent(in) :: g
      real(dp), intent(inout) :: u(g%ld, 5, g%n, g%n)
      integer :: i, j, k
      !$omp parallel do schedule(static) default(none) shared(u, g) private(i, j)
      do k = 1, g%n
         do j = 1, g%n
            do i = 1, g%n
               u(i, :, j, k) = exact((i - 1)*g%h, (j - 1)*g%h, (k - 1)*g%h)
            end do
         end do
      end do
   end subroutine

   ! Interpolated between the exact solution on opposite faces, in the three directions together
   ! (transfinite); exact on the faces themselves.
   subroutine set_initial(u, g)
      type(grid), intent(in) :: g
      real(dp), intent(inout) :: u(g%ld, 5, g%n, g%n)
      integer :: i, j, k
      !$omp parallel do schedule(static) default(none) shared(u, g) private(i, j)
      do k = 1, g%n
         do j = 1, g%n
            do i = 1, g%n
               if (min(i, j, k) == 1 .or. max(i, j, k) == g%n) then
                  u(i, :, j, k) = exact((i - 1)*g%h, (j - 1)*g%h, (k - 1)*g%h)
               else
                  u(i, :, j, k) = blend((i - 1)*g%h, (j - 1)*g%h, (k - 1)*g%h)
               end if
            end do
         end do
      end do
   end subroutine

   pure function blend(xi, eta, zeta) result(u)
      real(dp), intent(in) :: xi, eta, zeta
      real(dp) :: u(5), x(5), y(5), z(5)
      x = between(exact(0.0_dp, eta, zeta), exact(1.0_dp, eta, zeta), xi)
      y = between(exact(xi, 0.0_dp, zeta), exact(xi, 1.0_dp, zeta), eta)
      z = between(exact(xi, eta, 0.0_dp), exact(xi, eta, 1.0_dp), zeta)
      u = x + y + z - x*y - x*z - y*z + x*y*z
   end function

   pure function between(low, high, place) result(u)
      real(dp), intent(in) :: low(5), high(5), place
      real(dp) :: u(5)
      u = place*high + (1.0_dp - place)*low
   end function
end module
