! Block-tridiagonal systems along WIDTH lines at once: A(i) x(i-1) + B(i) x(i) + C(i) x(i+1) = r(i)
! with x = 0 on the faces.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007. The blocks are the Jacobian matrices of the
! convective (f) and the viscous (v) flux at the neighbouring points: A = -(f + v)(i-1), B = 1 + 2
! v(i), C = (f - v)(i+1), scaled by the step. Elimination is Gauss's without pivoting, as the
! benchmark has it.
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
      integer :: i, order(3)
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
         call substitute(upper(1, 1, 1, i), r(1, 1, i + 1), r(1, 1, i))
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

   ! centre = centre - below upper, x's right-hand side = that - below r, with the zeros of `below`
   ! left out: density depends on itself and the normal momentum, a tangential momentum on itself,
   ! density and the normal one.
   pure subroutine eliminate(order, below, upper, r, centre, x)
      integer, intent(in) :: order(3)
      real(dp), intent(in) :: below(WIDTH, 5, 5), upper(WIDTH, 5, 5), r(WIDTH, 5)
      real(dp), intent(inout) :: centre(WIDTH, 5, 5), x(WIDTH, 5, 6)
      integer :: q
      do q = 1, 5
         call subtract(order, below, upper(1, 1, q), centre(1, 1, q))
      end do
      call subtract(order, below, r, x(1, 1, 6))
   end subroutine

   ! y = y - below z. Each number is read once: the compiler makes the loop over lines one of
   ! vectors in registers.
   pure subroutine subtract(order, below, z, y)
      integer, intent(in) :: order(3)
      real(dp), intent(in) :: below(WIDTH, 5, 5), z(WIDTH, 5)
      real(dp), intent(inout) :: y(WIDTH, 5)
      real(dp) :: z1, zc, za, zb, z5
      integer :: l, c, a, b
      c = order(1)
      a = order(2)
      b = order(3)
      do l = 1, WIDTH
         z1 = z(l, 1)
         zc = z(l, c)
         za = z(l, a)
         zb = z(l, b)
         z5 = z(l, 5)
         y(l, 1) = y(l, 1) - below(l, 1, 1)*z1 - below(l, 1, c)*zc
         y(l, a) = y(l, a) - below(l, a, 1)*z1 - below(l, a, c)*zc - below(l, a, a)*za
         y(l, b) = y(l, b) - below(l, b, 1)*z1 - below(l, b, c)*zc - below(l, b, b)*zb
         y(l, c) = y(l, c) - below(l, c, 1)*z1 - below(l, c, c)*zc - below(l, c, a)*za - below(l, c, b)*zb &
                   - below(l, c, 5)*z5
         y(l, 5) = y(l, 5) - below(l, 5, 1)*z1 - below(l, 5, c)*zc - below(l, 5, a)*za - below(l, 5, b)*zb &
                   - below(l, 5, 5)*z5
      end do
   end subroutine

   ! x = b^-1 x; b is overwritten by its factors.
   pure subroutine solve_block(b, x)
      real(dp), intent(inout) :: b(WIDTH, 5, 5), x(WIDTH, 5, 6)
      real(dp) :: inverse(WIDTH, 5), x1, x2, x3, x4, x5
      integer :: j, l
      call factor(b, inverse)
      do j = 1, 6
         do l = 1, WIDTH
            x1 = x(l, 1, j)*inverse(l, 1)
            x2 = (x(l, 2, j) - b(l, 2, 1)*x1)*inverse(l, 2)
            x3 = (x(l, 3, j) - b(l, 3, 1)*x1 - b(l, 3, 2)*x2)*inverse(l, 3)
            x4 = (x(l, 4, j) - b(l, 4, 1)*x1 - b(l, 4, 2)*x2 - b(l, 4, 3)*x3)*inverse(l, 4)
            x5 = (x(l, 5, j) - b(l, 5, 1)*x1 - b(l, 5, 2)*x2 - b(l, 5, 3)*x3 - b(l, 5, 4)*x4)*inverse(l, 5)
            x4 = x4 - b(l, 4, 5)*x5
            x3 = x3 - b(l, 3, 4)*x4 - b(l, 3, 5)*x5
            x2 = x2 - b(l, 2, 3)*x3 - b(l, 2, 4)*x4 - b(l, 2, 5)*x5
            x1 = x1 - b(l, 1, 2)*x2 - b(l, 1, 3)*x3 - b(l, 1, 4)*x4 - b(l, 1, 5)*x5
            x(l, 1, j) = x1
            x(l, 2, j) = x2
            x(l, 3, j) = x3
            x(l, 4, j) = x4
            x(l, 5, j) = x5
         end do
      end do
   end subroutine

   ! b = L U with ones on U's diagonal; the inverses of L's diagonal beside it.
   pure subroutine factor(b, inverse)
      real(dp), intent(inout) :: b(WIDTH, 5, 5)
      real(dp), intent(out) :: inverse(WIDTH, 5)
      integer :: i, j, m
      do m = 1, 5
         inverse(:, m) = 1.0_dp/b(:, m, m)
         do j = m + 1, 5
            b(:, m, j) = b(:, m, j)*inverse(:, m)
            do i = m + 1, 5
               b(:, i, j) = b(:, i, j) - b(:, i, m)*b(:, m, j)
            end do
         end do
      end do
   end subroutine

   ! r = r - upper after
   pure subroutine substitute(upper, after, r)
      real(dp), intent(in) :: upper(WIDTH, 5, 5), after(WIDTH, 5)
      real(dp), intent(inout) :: r(WIDTH, 5)
      integer :: l, m
      do m = 1, 5
         do l = 1, WIDTH
            r(l, m) = r(l, m) - upper(l, m, 1)*after(l, 1) - upper(l, m, 2)*after(l, 2) - upper(l, m, 3)*after(l, 3) &
                      - upper(l, m, 4)*after(l, 4) - upper(l, m, 5)*after(l, 5)
         end do
      end do
   end subroutine
end module
