! A time step of NAS BT: the right-hand side, then a block-tridiagonal system along every line in
! each direction in turn (approximate factorisation), then the update.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module stepping
   use adi_grid
   use adi_lines, only: gather, scatter, WIDTH
   use adi_rhs, only: right_hand_side
   use bt_blocks, only: solve_lines
   implicit none
   private
   public :: step

contains

   subroutine step(g, u, p, forcing, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(inout), dimension(g%ld, 5, g%n, g%n) :: u, rhs
      real(dp), intent(inout) :: p(g%ld, PRIMITIVES, g%n, g%n)
      real(dp), intent(in) :: forcing(g%ld, 5, g%n, g%n)
      call right_hand_side(g, u, p, forcing, rhs)
      call solve_along_i(g, u, p, rhs)
      call solve_along_j(g, u, p, rhs)
      call solve_along_k(g, u, p, rhs)
      call add(g, u, rhs)
   end subroutine

   subroutine solve_along_i(g, u, p, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: u(g%ld, 5, g%n, g%n), p(g%ld, PRIMITIVES, g%n, g%n)
      real(dp), intent(inout) :: rhs(g%ld, 5, g%n, g%n)
      integer :: j, k
      !$omp parallel do schedule(static) default(none) shared(g, u, p, rhs) private(j)
      do k = 2, g%n - 1
         do j = 2, g%n - 1, WIDTH
            call solve(g, 1, g%n - j, g%ld, 1, u(1, 1, j, k), p(1, 1, j, k), rhs(1, 1, j, k))
         end do
      end do
   end subroutine

   subroutine solve_along_j(g, u, p, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: u(g%ld, 5, g%n, g%n), p(g%ld, PRIMITIVES, g%n, g%n)
      real(dp), intent(inout) :: rhs(g%ld, 5, g%n, g%n)
      integer :: i, k
      !$omp parallel do schedule(static) default(none) shared(g, u, p, rhs) private(i)
      do k = 2, g%n - 1
         do i = 2, g%n - 1, WIDTH
            call solve(g, 2, g%n - i, 0, g%ld, u(i, 1, 1, k), p(i, 1, 1, k), rhs(i, 1, 1, k))
         end do
      end do
   end subroutine

   subroutine solve_along_k(g, u, p, rhs)
      type(grid), intent(in) :: g
      real(dp), intent(in) :: u(g%ld, 5, g%n, g%n), p(g%ld, PRIMITIVES, g%n, g%n)
      real(dp), intent(inout) :: rhs(g%ld, 5, g%n, g%n)
      integer :: i, j
      !$omp parallel do schedule(static) default(none) shared(g, u, p, rhs) private(i)
      do j = 2, g%n - 1
         do i = 2, g%n - 1, WIDTH
            call solve(g, 3, g%n - i, 0, g%ld*g%n, u(i, 1, j, 1), p(i, 1, j, 1), rhs(i, 1, j, 1))
         end do
      end do
   end subroutine

   ! Up to WIDTH of the `rest` lines that begin at u, p and rhs. They are `rows` rows apart, or
   ! neighbours in a row when that is 0; points are `rows_a_point` rows apart, or neighbours in a
   ! row when it is 1.
   subroutine solve(g, direction, rest, rows, rows_a_point, u, p, rhs)
      type(grid), intent(in) :: g
      integer, intent(in) :: direction, rest, rows, rows_a_point
      real(dp), intent(in) :: u(*), p(*)
      real(dp), intent(inout) :: rhs(*)
      real(dp) :: lu(WIDTH, 5, g%n), lp(WIDTH, SQ, g%n), r(WIDTH, 5, g%n)
      integer :: lines
      lines = min(WIDTH, rest)
      call gather(g%n, lines, apart(5), stride(5), g%ld, 5, u, lu)
      call gather(g%n, lines, apart(PRIMITIVES), stride(PRIMITIVES), g%ld, SQ, p, lp)
      call gather(g%n, lines, apart(5), stride(5), g%ld, 5, rhs, r)
      call solve_lines(g, direction, lu, lp, r)
      call scatter(g%n, lines, apart(5), stride(5), g%ld, 5, r, rhs)
   contains
      pure integer function apart(parts)
         integer, intent(in) :: parts
         apart = merge(rows*parts, 1, rows > 0)
      end function
      pure integer function stride(parts)
         integer, intent(in) :: parts
         stride = merge(rows_a_point*parts, 1, rows_a_point > 1)
      end function
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
