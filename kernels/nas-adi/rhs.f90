! The right-hand side of NAS BT and SP: convective and viscous differences of the five quantities in
! three directions, and fourth-difference dissipation.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007. The forcing term is what makes the exact solution
! a steady state, so it is the same operator, applied to the exact solution, with the other sign.
!
! All three directions are added up a row at a time, while the row is in the cache. A neighbour
! along i is the same row one number further, so one routine serves the three directions.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module adi_rhs
   use adi_grid
   implicit none
   private
   public :: right_hand_side, make_forcing, row_work

   abstract interface
      ! What a program does with a row of its right-hand side before it is stored: r(i, 1:5) for the
      ! points 2 .. n - 1.
      pure subroutine row_work(count, ld, r, p)
         import :: dp, PRIMITIVES
         integer, intent(in) :: count, ld
         real(dp), intent(inout) :: r(ld, 5)
         real(dp), intent(in) :: p(ld, PRIMITIVES)
      end subroutine
   end interface

   ! Fourth differences: second neighbour below, neighbour below, point, above, second above;
   ! nothing outside.
   real(dp), parameter :: fourth(5) = [1.0_dp, -4.0_dp, 6.0_dp, -4.0_dp, 1.0_dp]

contains

   ! rhs = dt (forcing + differences of u) at the inner points; p is made on the way.
   subroutine right_hand_side(g, u, p, forcing, rhs, finish)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: u(g%ld, 5, g%n, g%n), forcing(g%ld, 5, g%n, g%n)
      real(dp), intent(inout) :: p(g%ld, PRIMITIVES, g%n, g%n), rhs(g%ld, 5, g%n, g%n)
      procedure(row_work), optional :: finish
      real(dp) :: r(g%ld, 5)
      integer :: j, k
      !$omp parallel default(none) shared(g, u, p, forcing, rhs) private(r, j, k)
      !$omp do schedule(static)
      do k = 1, g%n
         do j = 1, g%n
            call primitives_of(g%n, g%ld, u(1, 1, j, k), p(1, 1, j, k))
         end do
      end do
      !$omp end do
      !$omp do schedule(static)
      do k = 2, g%n - 1
         do j = 2, g%n - 1
            call load(g%n - 2, g%ld, forcing(2, 1, j, k), r)
            call add_differences(g, u, p, j, k, r)
            r(:g%n - 2, :) = g%dt*r(:g%n - 2, :)
            if (present(finish)) call finish(g%n - 2, g%ld, r, p(2, 1, j, k))
            rhs(2:g%n - 1, :, j, k) = r(:g%n - 2, :)
         end do
      end do
      !$omp end do
      !$omp end parallel
   end subroutine

   ! u must hold the exact solution; forcing must be zero at the faces.
   subroutine make_forcing(g, u, p, forcing)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: u(g%ld, 5, g%n, g%n)
      real(dp), intent(inout) :: p(g%ld, PRIMITIVES, g%n, g%n), forcing(g%ld, 5, g%n, g%n)
      real(dp) :: r(g%ld, 5)
      integer :: j, k
      !$omp parallel default(none) shared(g, u, p, forcing) private(r, j, k)
      !$omp do schedule(static)
      do k = 1, g%n
         do j = 1, g%n
            call primitives_of(g%n, g%ld, u(1, 1, j, k), p(1, 1, j, k))
         end do
      end do
      !$omp end do
      !$omp do schedule(static)
      do k = 2, g%n - 1
         do j = 2, g%n - 1
            r = 0
            call add_differences(g, u, p, j, k, r)
            forcing(2:g%n - 1, :, j, k) = -r(:g%n - 2, :)
         end do
      end do
      !$omp end do
      !$omp end parallel
   end subroutine

   pure subroutine primitives_of(n, ld, u, p)
      integer, intent(in) :: n, ld
      real(dp), intent(in) :: u(ld, 5)
      real(dp), intent(inout) :: p(ld, PRIMITIVES)
      real(dp) :: inverse, kinetic
      integer :: i
      do i = 1, n
         inverse = 1.0_dp/u(i, 1)
         kinetic = 0.5_dp*(u(i, 2)**2 + u(i, 3)**2 + u(i, 4)**2)*inverse
         p(i, RHO) = inverse
         p(i, 2) = u(i, 2)*inverse
         p(i, 3) = u(i, 3)*inverse
         p(i, 4) = u(i, 4)*inverse
         p(i, QS) = kinetic*inverse
         p(i, SQ) = kinetic
         p(i, SPEED) = sqrt(c1*c2*inverse*(u(i, 5) - kinetic))
      end do
   end subroutine

   pure subroutine load(count, ld, x, r)
      integer, intent(in) :: count, ld
      real(dp), intent(in) :: x(ld, 5)
      real(dp), intent(out) :: r(ld, 5)
      integer :: m
      do m = 1, 5
         r(:count, m) = x(:count, m)
      end do
   end subroutine

   pure subroutine add_differences(g, u, p, j, k, r)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: u(g%ld, 5, g%n, g%n), p(g%ld, PRIMITIVES, g%n, g%n)
      integer, intent(in) :: j, k
      real(dp), intent(inout) :: r(g%ld, 5)
      call add_direction(g, 1, u(1, 1, j, k), u(2, 1, j, k), u(3, 1, j, k), &
                         p(1, 1, j, k), p(2, 1, j, k), p(3, 1, j, k), r)
      call add_direction(g, 2, u(2, 1, j - 1, k), u(2, 1, j, k), u(2, 1, j + 1, k), &
                         p(2, 1, j - 1, k), p(2, 1, j, k), p(2, 1, j + 1, k), r)
      call add_direction(g, 3, u(2, 1, j, k - 1), u(2, 1, j, k), u(2, 1, j, k + 1), &
                         p(2, 1, j, k - 1), p(2, 1, j, k), p(2, 1, j, k + 1), r)
      call dissipate_along(g, u(1, 1, j, k), r)
      call dissipate_across(g, j, u(2, 1, max(j - 2, 1), k), u(2, 1, j - 1, k), u(2, 1, j, k), u(2, 1, j + 1, k), &
                            u(2, 1, min(j + 2, g%n), k), r)
      call dissipate_across(g, k, u(2, 1, j, max(k - 2, 1)), u(2, 1, j, k - 1), u(2, 1, j, k), u(2, 1, j, k + 1), &
                            u(2, 1, j, min(k + 2, g%n)), r)
   end subroutine

   ! One direction's differences: u and p of the row below, the row itself and the row above in that
   ! direction.
   pure subroutine add_direction(g, direction, ul, u, uh, pl, p, ph, r)
      type(grid), intent(in) :: g
      integer, intent(in) :: direction
      real(dp), intent(in), dimension(g%ld, 5) :: ul, u, uh
      real(dp), intent(in), dimension(g%ld, PRIMITIVES) :: pl, p, ph
      real(dp), intent(inout) :: r(g%ld, 5)
      real(dp) :: diffusion, viscosity
      integer :: i, m, c
      c = direction + 1 ! the momentum and the velocity in this direction
      diffusion = g%d(direction)*g%t1
      do i = 1, g%n - 2
         r(i, 1) = r(i, 1) + diffusion*(uh(i, 1) - 2.0_dp*u(i, 1) + ul(i, 1)) - g%t2*(uh(i, c) - ul(i, c))
      end do
      do m = 2, 4
         viscosity = merge(con43, 1.0_dp, m == c)*c3c4*g%t1
         do i = 1, g%n - 2
            r(i, m) = r(i, m) + diffusion*(uh(i, m) - 2.0_dp*u(i, m) + ul(i, m)) &
                      + viscosity*(ph(i, m) - 2.0_dp*p(i, m) + pl(i, m)) &
                      - g%t2*(uh(i, m)*ph(i, c) - ul(i, m)*pl(i, c))
         end do
      end do
      do i = 1, g%n - 2
         r(i, c) = r(i, c) - g%t2*c2*(uh(i, 5) - ph(i, SQ) - ul(i, 5) + pl(i, SQ))
      end do
      call add_energy(g, c, diffusion, ul, u, uh, pl, p, ph, r)
   end subroutine

   pure subroutine add_energy(g, c, diffusion, ul, u, uh, pl, p, ph, r)
      type(grid), intent(in) :: g
      integer, intent(in) :: c
      real(dp), intent(in) :: diffusion
      real(dp), intent(in), dimension(g%ld, 5) :: ul, u, uh
      real(dp), intent(in), dimension(g%ld, PRIMITIVES) :: pl, p, ph
      real(dp), intent(inout) :: r(g%ld, 5)
      real(dp) :: by_speed, by_normal, by_energy
      integer :: i
      by_speed = c3c4*(1.0_dp - c1c5)*g%t1
      by_normal = c3c4*g%t1/6.0_dp
      by_energy = c3c4*c1c5*g%t1
      do i = 1, g%n - 2
         r(i, 5) = r(i, 5) + diffusion*(uh(i, 5) - 2.0_dp*u(i, 5) + ul(i, 5)) &
                   + by_speed*(ph(i, QS) - 2.0_dp*p(i, QS) + pl(i, QS)) &
                   + by_normal*(ph(i, c)**2 - 2.0_dp*p(i, c)**2 + pl(i, c)**2) &
                   + by_energy*(uh(i, 5)*ph(i, RHO) - 2.0_dp*u(i, 5)*p(i, RHO) + ul(i, 5)*pl(i, RHO)) &
                   - g%t2*((c1*uh(i, 5) - c2*ph(i, SQ))*ph(i, c) - (c1*ul(i, 5) - c2*pl(i, SQ))*pl(i, c))
      end do
   end subroutine

   ! The weights at a point of a line of n points: at the ends, what lies outside is left out, and
   ! the point counts 5.
   pure function weights(place, n) result(w)
      integer, intent(in) :: place, n
      real(dp) :: w(5)
      w = fourth
      if (place == 2) w(1:3) = [0.0_dp, 0.0_dp, 5.0_dp]
      if (place == 3) w(1) = 0
      if (place == n - 2) w(5) = 0
      if (place == n - 1) w(3:5) = [5.0_dp, 0.0_dp, 0.0_dp]
   end function

   pure subroutine dissipate_across(g, place, u1, u2, u3, u4, u5, r)
      type(grid), intent(in) :: g
      integer, intent(in) :: place
      real(dp), intent(in), dimension(g%ld, 5) :: u1, u2, u3, u4, u5
      real(dp), intent(inout) :: r(g%ld, 5)
      real(dp) :: w(5)
      integer :: i, m
      w = g%dissipation*weights(place, g%n)
      do m = 1, 5
         do i = 1, g%n - 2
            r(i, m) = r(i, m) - (w(1)*u1(i, m) + w(2)*u2(i, m) + w(3)*u3(i, m) + w(4)*u4(i, m) + w(5)*u5(i, m))
         end do
      end do
   end subroutine

   ! Along the row itself, which begins with the face's point here.
   pure subroutine dissipate_along(g, u, r)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: u(g%ld, 5)
      real(dp), intent(inout) :: r(g%ld, 5)
      real(dp) :: w(5)
      integer :: e, i, m, ends(4)
      w = g%dissipation*fourth
      ends = [2, 3, g%n - 2, g%n - 1]
      do m = 1, 5
         do i = 4, g%n - 3
            r(i - 1, m) = r(i - 1, m) - (w(1)*u(i - 2, m) + w(2)*u(i - 1, m) + w(3)*u(i, m) + w(4)*u(i + 1, m) &
                                         + w(5)*u(i + 2, m))
         end do
         do e = 1, 4
            i = ends(e)
            r(i - 1, m) = r(i - 1, m) - g%dissipation*edge_sum(weights(i, g%n), u(:, m), i, g%n)
         end do
      end do
   end subroutine

   pure function edge_sum(w, u, i, n) result(s)
      real(dp), intent(in) :: w(5), u(:)
      integer, intent(in) :: i, n
      real(dp) :: s
      integer :: e
      s = 0
      do e = max(-2, 1 - i), min(2, n - i)
         s = s + w(e + 3)*u(i + e)
      end do
   end function
end module
