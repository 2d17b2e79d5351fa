! A time step of NAS SP: the right-hand side in characteristic quantities, then scalar pentadiagonal
! systems along every line in each direction in turn, with a change of characteristic quantities
! between them, then the update.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007 (diagonalised approximate factorisation).
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module stepping
   use adi_grid
   use adi_lines, only: gather, scatter, WIDTH
   use adi_rhs, only: right_hand_side
   use sp_pentadiagonal, only: solve_lines
   implicit none
   private
   public :: step

   real(dp), parameter :: bt = sqrt(0.5_dp)

contains

   subroutine step(g, u, p, forcing, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(inout), dimension(g%ld, 5, g%n, g%n) :: u, rhs
      real(dp), intent(inout) :: p(g%ld, PRIMITIVES, g%n, g%n)
      real(dp), intent(in) :: forcing(g%ld, 5, g%n, g%n)
      call right_hand_side(g, u, p, forcing, rhs, to_characteristic)
      call solve_along_i(g, p, rhs)
      call solve_along_j(g, p, rhs)
      call solve_along_k(g, u, p, rhs)
      call add(g, u, rhs)
   end subroutine

   ! From conserved to characteristic quantities, up to the first direction's rotation.
   pure subroutine to_characteristic(count, ld, r, p)
      integer, intent(in) :: count, ld
      real(dp), intent(inout) :: r(ld, 5)
      real(dp), intent(in) :: p(ld, PRIMITIVES)
      real(dp) :: pressure, normal, sound, density
      integer :: i
      do i = 1, count
         density = r(i, 1)
         pressure = c2*(p(i, QS)*density - p(i, 2)*r(i, 2) - p(i, 3)*r(i, 3) - p(i, 4)*r(i, 4) + r(i, 5))/p(i, SPEED)**2
         normal = bt*p(i, RHO)*(p(i, 2)*density - r(i, 2))
         sound = bt*p(i, RHO)*p(i, SPEED)*pressure
         r(i, 1) = density - pressure
         r(i, 2) = -p(i, RHO)*(p(i, 4)*density - r(i, 4))
         r(i, 3) = p(i, RHO)*(p(i, 3)*density - r(i, 3))
         r(i, 4) = sound - normal
         r(i, 5) = sound + normal
      end do
   end subroutine

   subroutine solve_along_i(g, p, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: p(g%ld, PRIMITIVES, g%n, g%n)
      real(dp), intent(inout) :: rhs(g%ld, 5, g%n, g%n)
      real(dp) :: r(WIDTH, 5, g%n)
      integer :: j, k, lines
      !$omp parallel do schedule(static) default(none) shared(g, p, rhs) private(j, lines, r)
      do k = 2, g%n - 1
         do j = 2, g%n - 1, WIDTH
            lines = min(WIDTH, g%n - j)
            call solve(g, 1, lines, g%ld*PRIMITIVES, 1, g%ld*5, 1, p(1, 1, j, k), rhs(1, 1, j, k), r)
            call turn_to_second(g%n, r)
            call scatter(g%n, lines, g%ld*5, 1, g%ld, 5, r, rhs(1, 1, j, k))
         end do
      end do
   end subroutine

   subroutine solve_along_j(g, p, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: p(g%ld, PRIMITIVES, g%n, g%n)
      real(dp), intent(inout) :: rhs(g%ld, 5, g%n, g%n)
      real(dp) :: r(WIDTH, 5, g%n)
      integer :: i, k, lines
      !$omp parallel do schedule(static) default(none) shared(g, p, rhs) private(i, lines, r)
      do k = 2, g%n - 1
         do i = 2, g%n - 1, WIDTH
            lines = min(WIDTH, g%n - i)
            call solve(g, 2, lines, 1, g%ld*PRIMITIVES, 1, g%ld*5, p(i, 1, 1, k), rhs(i, 1, 1, k), r)
            call turn_to_third(g%n, r)
            call scatter(g%n, lines, 1, g%ld*5, g%ld, 5, r, rhs(i, 1, 1, k))
         end do
      end do
   end subroutine

   subroutine solve_along_k(g, u, p, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: u(g%ld, 5, g%n, g%n), p(g%ld, PRIMITIVES, g%n, g%n)
      real(dp), intent(inout) :: rhs(g%ld, 5, g%n, g%n)
      real(dp) :: r(WIDTH, 5, g%n)
      integer :: i, j, k, lines
      !$omp parallel do schedule(static) default(none) shared(g, u, p, rhs) private(i, k, lines, r)
      do j = 2, g%n - 1
         do i = 2, g%n - 1, WIDTH
            lines = min(WIDTH, g%n - i)
            call solve(g, 3, lines, 1, g%ld*PRIMITIVES*g%n, 1, g%ld*5*g%n, p(i, 1, j, 1), rhs(i, 1, j, 1), r)
            do k = 2, g%n - 1
               call to_conserved(lines, g%ld, u(i, 1, j, k), p(i, 1, j, k), r(1, 1, k))
            end do
            call scatter(g%n, lines, 1, g%ld*5*g%n, g%ld, 5, r, rhs(i, 1, j, 1))
         end do
      end do
   end subroutine

   ! r = the solutions along up to WIDTH lines; distances of lines and of points in p and in rhs, in
   ! numbers.
   subroutine solve(g, direction, lines, p_apart, p_stride, r_apart, r_stride, p, rhs, r)
      type(grid), intent(in) :: g
      integer, intent(in) :: direction, lines, p_apart, p_stride, r_apart, r_stride
      real(dp), intent(in) :: p(*), rhs(*)
      real(dp), intent(out) :: r(WIDTH, 5, g%n)
      real(dp), dimension(WIDTH, g%n) :: velocity, inverse, sound
      call gather(g%n, lines, p_apart, p_stride, g%ld, 1, p(1 + (RHO - 1)*g%ld), inverse)
      call gather(g%n, lines, p_apart, p_stride, g%ld, 1, p(1 + direction*g%ld), velocity)
      call gather(g%n, lines, p_apart, p_stride, g%ld, 1, p(1 + (SPEED - 1)*g%ld), sound)
      call gather(g%n, lines, r_apart, r_stride, g%ld, 5, rhs, r)
      call solve_lines(g, direction, velocity, inverse, sound, r)
   end subroutine

   ! From the characteristic quantities of the first direction to those of the second.
   pure subroutine turn_to_second(n, r)
      integer, intent(in) :: n
      real(dp), intent(inout) :: r(WIDTH, 5, n)
      real(dp), dimension(WIDTH) :: first, second, third, mean
      integer :: i
      do i = 2, n - 1
         first = r(:, 1, i)
         second = r(:, 2, i)
         third = bt*r(:, 3, i)
         mean = 0.5_dp*(r(:, 4, i) + r(:, 5, i))
         r(:, 1, i) = -second
         r(:, 2, i) = first
         r(:, 3, i) = bt*(r(:, 4, i) - r(:, 5, i))
         r(:, 4, i) = mean - third
         r(:, 5, i) = mean + third
      end do
   end subroutine

   ! From those of the second direction to those of the third.
   pure subroutine turn_to_third(n, r)
      integer, intent(in) :: n
      real(dp), intent(inout) :: r(WIDTH, 5, n)
      real(dp), dimension(WIDTH) :: first, second, third, mean
      integer :: i
      do i = 2, n - 1
         first = bt*r(:, 1, i)
         second = r(:, 2, i)
         third = r(:, 3, i)
         mean = 0.5_dp*(r(:, 4, i) + r(:, 5, i))
         r(:, 1, i) = bt*(r(:, 4, i) - r(:, 5, i))
         r(:, 2, i) = -third
         r(:, 3, i) = second
         r(:, 4, i) = mean - first
         r(:, 5, i) = mean + first
      end do
   end subroutine

   ! From those of the third direction to the conserved quantities.
   pure subroutine to_conserved(lines, ld, u, p, r)
      integer, intent(in) :: lines, ld
      real(dp), intent(in) :: u(ld, 5), p(ld, PRIMITIVES)
      real(dp), intent(inout) :: r(WIDTH, 5)
      real(dp) :: sound, density, normal, first, second
      integer :: l
      do l = 1, lines
         first = r(l, 1)
         second = r(l, 2)
         sound = bt*u(l, 1)/p(l, SPEED)*(r(l, 4) + r(l, 5))
         density = r(l, 3) + sound
         normal = bt*u(l, 1)*(r(l, 4) - r(l, 5))
         r(l, 1) = density
         r(l, 2) = p(l, 2)*density - u(l, 1)*second
         r(l, 3) = p(l, 3)*density + u(l, 1)*first
         r(l, 4) = p(l, 4)*density + normal
         r(l, 5) = u(l, 1)*(p(l, 3)*first - p(l, 2)*second) + p(l, QS)*density &
                   + p(l, SPEED)**2*sound/c2 + p(l, 4)*normal
      end do
   end subroutine

   subroutine add(g, u, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(inout) :: u(g%ld, 5, g%n, g%n)
      real(dp), intent(in) :: rhs(g%ld, 5, g%n, g%n)
      integer :: j, k, m
      !$omp parallel do schedule(static) default(none) shared(g, u, rhs) private(j, m)
      do k = 2, g%n - 1
         do j = 2, g%n - 1
            do m = 1, 5
               u(2:g%n - 1, m, j, k) = u(2:g%n - 1, m, j, k) + rhs(2:g%n - 1, m, j, k)
            end do
         end do
      end do
   end subroutine
end module
