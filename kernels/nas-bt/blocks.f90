! Block-tridiagonal systems along WIDTH lines at once: A(i) x(i-1) + B(i) x(i) + C(i) x(i+1) = r(i) with x = 0 on the faces.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007. The blocks are the Jacobian matrices of the convective (f) and the
! viscous (v) flux at the neighbouring points: A = -(f + v)(i-1), B = 1 + 2 v(i), C = (f - v)(i+1), scaled by the step.
! Elimination is Gauss's without pivoting, as the benchmark has it.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module bt_blocks
   use adi_grid
   use adi_lines, only: WIDTH
   implicit none
   private
   public :: solve_lines

contains

   pure subroutine solve_lines(g, direction, u, p, r)
      type(grid), intent(in) :: g
      integer, intent(in) :: direction
      real(dp), intent(in) :: u(WIDTH, 5, g%n), p(WIDTH, SQ, g%n)
      real(dp), intent(inout) :: r(WIDTH, 5, g%n)
      ! Of the point before, this one and the next in turn.
      real(dp), dimension(WIDTH, 5, 5) :: f, v, below, centre, next_below, next_centre
      real(dp) :: x(WIDTH, 5, 6), upper(WIDTH, 5, 5, g%n)
      integer :: i, m, order(3)
      order = tangents(direction)
      r(:, :, 1) = 0
      r(:, :, g%n) = 0
      upper(:, :, :, 1) = 0
      f = 0
      v = 0
      call jacobians(g, order, u(1, 1, 1), p(1, 1, 1), f, v)
      below = -(f + v)
      call jacobians(g, order, u(1, 1, 2), p(1, 1, 2), f, v)
      call split(f, v, next_below, centre)
      do i = 2, g%n - 1
         call jacobians(g, order, u(1, 1, i + 1), p(1, 1, i + 1), f, v)
         x(:, :, 1:5) = f - v
         x(:, :, 6) = r(:, :, i)
         call eliminate(order, below, upper(1, 1, 1, i - 1), r(1, 1, i - 1), centre, x)
         call solve_block(centre, x)
         upper(:, :, :, i) = x(:, :, 1:5)
         r(:, :, i) = x(:, :, 6)
         below = next_below
         call split(f, v, next_below, next_centre)
         centre = next_centre
      end do
      do i = g%n - 2, 2, -1
         do m = 1, 5
            r(:, :, i) = r(:, :, i) - upper(:, :, m, i)*spread(r(:, m, i + 1), 2, 5)
         end do
      end do
   end subroutine

   ! The momentum along the lines, then the other two.
   pure function tangents(direction) result(order)
      integer, intent(in) :: direction
      integer :: order(3)
      order = cshift([2, 3, 4], direction - 1)
   end function

   ! What a point gives to its own row and to the row of the next point.
   pure subroutine split(f, v, below, centre)
      real(dp), intent(in), dimension(WIDTH, 5, 5) :: f, v
      real(dp), intent(out), dimension(WIDTH, 5, 5) :: below, centre
      integer :: m
      below = -(f + v)
      centre = 2.0_dp*v
      do m = 1, 5
         centre(:, m, m) = 1.0_dp + centre(:, m, m)
      end do
   end subroutine

   ! Fills in what is not zero: f and v come with zeros elsewhere.
   pure subroutine jacobians(g, order, u, p, f, v)
      type(grid), intent(in) :: g
      integer, intent(in) :: order(3)
      real(dp), intent(in) :: u(WIDTH, 5), p(WIDTH, SQ)
      real(dp), intent(inout), dimension(WIDTH, 5, 5) :: f, v
      real(dp) :: df, dv, diffusion, k
      integer :: c, m, e
      c = order(1)
      df = g%dt*g%t2
      dv = g%dt*g%t1*c3c4
      diffusion = g%dt*g%t1*g%d(c - 1)
      f(:, 1, c) = df
      v(:, 1, 1) = diffusion
      v(:, 5, 1) = -(g%dt*g%t1*c1345)*p(:, RHO)**2*u(:, 5)
      do e = 1, 3
         m = order(e)
         k = merge(con43, 1.0_dp, e == 1)
         if (e > 1) then
            f(:, m, 1) = -df*p(:, c)*p(:, m)
            f(:, m, c) = df*p(:, m)
            f(:, m, m) = df*p(:, c)
            f(:, c, m) = -(df*c2)*p(:, m)
            f(:, 5, m) = -(df*c2)*p(:, m)*p(:, c)
         end if
         v(:, m, 1) = -(k*dv)*p(:, RHO)*p(:, m)
         v(:, m, m) = (k*dv)*p(:, RHO) + diffusion
         v(:, 5, m) = (k*dv - g%dt*g%t1*c1345)*p(:, RHO)*p(:, m)
         v(:, 5, 1) = v(:, 5, 1) - v(:, 5, m)*p(:, m)
      end do
      f(:, c, 1) = df*(c2*p(:, QS) - p(:, c)**2)
      f(:, c, c) = (df*(2.0_dp - c2))*p(:, c)
      f(:, c, 5) = df*c2
      f(:, 5, 1) = df*(2.0_dp*c2*p(:, SQ) - c1*u(:, 5))*p(:, c)*p(:, RHO)
      f(:, 5, c) = df*(c1*u(:, 5)*p(:, RHO) - c2*(p(:, c)**2 + p(:, QS)))
      f(:, 5, 5) = (df*c1)*p(:, c)
      v(:, 5, 5) = (g%dt*g%t1*c1345)*p(:, RHO) + diffusion
   end subroutine

   ! centre = centre - below upper, x's right-hand side = that - below r, with the zeros of `below` left out: density depends
   ! on itself and the normal momentum, a tangential momentum on itself, density and the normal one.
   pure subroutine eliminate(order, below, upper, r, centre, x)
      integer, intent(in) :: order(3)
      real(dp), intent(in) :: below(WIDTH, 5, 5), upper(WIDTH, 5, 5), r(WIDTH, 5)
      real(dp), intent(inout) :: centre(WIDTH, 5, 5), x(WIDTH, 5, 6)
      integer :: c, e, m, q
      c = order(1)
      do q = 1, 5
         centre(:, 1, q) = centre(:, 1, q) - below(:, 1, 1)*upper(:, 1, q) - below(:, 1, c)*upper(:, c, q)
         do e = 2, 3
            m = order(e)
            centre(:, m, q) = centre(:, m, q) - below(:, m, 1)*upper(:, 1, q) - below(:, m, c)*upper(:, c, q) &
                              - below(:, m, m)*upper(:, m, q)
         end do
         centre(:, c, q) = full(below, c, upper(:, :, q), centre(:, c, q))
         centre(:, 5, q) = full(below, 5, upper(:, :, q), centre(:, 5, q))
      end do
      do m = 1, 5
         x(:, m, 6) = full(below, m, r, x(:, m, 6))
      end do
   end subroutine

   pure function full(below, m, y, start) result(s)
      real(dp), intent(in) :: below(WIDTH, 5, 5), y(WIDTH, 5), start(WIDTH)
      integer, intent(in) :: m
      real(dp) :: s(WIDTH)
      s = start - below(:, m, 1)*y(:, 1) - below(:, m, 2)*y(:, 2) - below(:, m, 3)*y(:, 3) &
          - below(:, m, 4)*y(:, 4) - below(:, m, 5)*y(:, 5)
   end function

   ! x = b^-1 x; b is overwritten.
   pure subroutine solve_block(b, x)
      real(dp), intent(inout) :: b(WIDTH, 5, 5), x(WIDTH, 5, 6)
      real(dp) :: inverse(WIDTH)
      integer :: i, j, m
      do m = 1, 5
         inverse = 1.0_dp/b(:, m, m)
         do j = m + 1, 5
            b(:, m, j) = b(:, m, j)*inverse
            do i = m + 1, 5
               b(:, i, j) = b(:, i, j) - b(:, i, m)*b(:, m, j)
            end do
         end do
         do j = 1, 6
            x(:, m, j) = x(:, m, j)*inverse
            do i = m + 1, 5
               x(:, i, j) = x(:, i, j) - b(:, i, m)*x(:, m, j)
            end do
         end do
      end do
      do j = 1, 6
         do m = 4, 1, -1
            do i = m + 1, 5
               x(:, m, j) = x(:, m, j) - b(:, m, i)*x(:, i, j)
            end do
         end do
      end do
   end subroutine
end module
