! The four operators of NAS MG on one level. Each works plane by plane (the third index, one static
! schedule) and, where the result needs ghosts, wraps its plane while it is in the cache.
!
! Residual and smoother first add up, for a whole row, the four neighbours across a face and the
! four across an edge (`face`, `edge`): each such sum is used by three points of the row. This is
! the published optimisation of the benchmark; it fixes the order of the additions too.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007 (A, S, P, Q as 27-point stencils).
!
! Every parallel region says `default(none)`: a forgotten private scalar still verifies when the
! compiler keeps it in a register.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module mg_stencils
   use mg_grids, only: dp, exchange_ghosts, most_points, wrap_plane
   implicit none
   private
   public :: residual, residual_in_place, smooth, restrict_to, interpolate_to, norm

   ! The operator by distance: centre, face, edge, corner. The face coefficient is zero and left out
   ! of the loops.
   real(dp), parameter :: a0 = -8.0_dp/3.0_dp, a2 = 1.0_dp/6.0_dp, a3 = 1.0_dp/12.0_dp

contains

   pure subroutine add_neighbours(x, n, i2, i3, face, edge)
      integer, intent(in) :: n, i2, i3
      real(dp), intent(in) :: x(n, n, n)
      real(dp), intent(out) :: face(n), edge(n)
      integer :: i1
      do i1 = 1, n
         face(i1) = x(i1, i2 - 1, i3) + x(i1, i2 + 1, i3) + x(i1, i2, i3 - 1) + x(i1, i2, i3 + 1)
         edge(i1) = x(i1, i2 - 1, i3 - 1) + x(i1, i2 + 1, i3 - 1) + x(i1, i2 - 1, i3 + 1) + x(i1, i2 + 1, i3 + 1)
      end do
   end subroutine

   ! r = v - A u
   subroutine residual(u, v, r, n)
      integer, intent(in) :: n
      real(dp), intent(in) :: u(n, n, n), v(n, n, n)
      real(dp), intent(inout) :: r(n, n, n)
      real(dp) :: face(most_points), edge(most_points)
      integer :: i1, i2, i3
      !$omp parallel default(none) shared(u, v, r, n) private(face, edge, i1, i2, i3)
      !$omp do schedule(static)
      do i3 = 2, n - 1
         do i2 = 2, n - 1
            call add_neighbours(u, n, i2, i3, face, edge)
            do i1 = 2, n - 1
               r(i1, i2, i3) = v(i1, i2, i3) - a0*u(i1, i2, i3) &
                               - a2*(edge(i1) + face(i1 - 1) + face(i1 + 1)) &
                               - a3*(edge(i1 - 1) + edge(i1 + 1))
            end do
         end do
         call wrap_plane(r(:, :, i3), n)
      end do
      !$omp end do
      call exchange_ghosts(r, n)
      !$omp end parallel
   end subroutine

   ! r = r - A u. Its own routine because Fortran forbids passing one array as both v and r above.
   subroutine residual_in_place(u, r, n)
      integer, intent(in) :: n
      real(dp), intent(in) :: u(n, n, n)
      real(dp), intent(inout) :: r(n, n, n)
      real(dp) :: face(most_points), edge(most_points)
      integer :: i1, i2, i3
      !$omp parallel default(none) shared(u, r, n) private(face, edge, i1, i2, i3)
      !$omp do schedule(static)
      do i3 = 2, n - 1
         do i2 = 2, n - 1
            call add_neighbours(u, n, i2, i3, face, edge)
            do i1 = 2, n - 1
               r(i1, i2, i3) = r(i1, i2, i3) - a0*u(i1, i2, i3) &
                               - a2*(edge(i1) + face(i1 - 1) + face(i1 + 1)) &
                               - a3*(edge(i1 - 1) + edge(i1 + 1))
            end do
         end do
         call wrap_plane(r(:, :, i3), n)
      end do
      !$omp end do
      call exchange_ghosts(r, n)
      !$omp end parallel
   end subroutine

   ! u = u + S r, with c the smoother by distance; its corner coefficient is zero.
   subroutine smooth(r, u, n, c)
      integer, intent(in) :: n
      real(dp), intent(in) :: r(n, n, n), c(0:2)
      real(dp), intent(inout) :: u(n, n, n)
      real(dp) :: face(most_points), edge(most_points)
      integer :: i1, i2, i3
      !$omp parallel default(none) shared(r, u, n, c) private(face, edge, i1, i2, i3)
      !$omp do schedule(static)
      do i3 = 2, n - 1
         do i2 = 2, n - 1
            call add_neighbours(r, n, i2, i3, face, edge)
            do i1 = 2, n - 1
               u(i1, i2, i3) = u(i1, i2, i3) + c(0)*r(i1, i2, i3) &
                               + c(1)*(r(i1 - 1, i2, i3) + r(i1 + 1, i2, i3) + face(i1)) &
                               + c(2)*(edge(i1) + face(i1 - 1) + face(i1 + 1))
            end do
         end do
         call wrap_plane(u(:, :, i3), n)
      end do
      !$omp end do
      call exchange_ghosts(u, n)
      !$omp end parallel
   end subroutine

   ! Full weighting: coarse = P fine. Coarse point j lies on fine point 2j - 1.
   subroutine restrict_to(fine, nf, coarse, nc)
      integer, intent(in) :: nf, nc
      real(dp), intent(in) :: fine(nf, nf, nf)
      real(dp), intent(inout) :: coarse(nc, nc, nc)
      real(dp) :: face(most_points), edge(most_points)
      integer :: i1, j1, j2, j3
      !$omp parallel default(none) shared(fine, nf, coarse, nc) private(face, edge, i1, j1, j2, j3)
      !$omp do schedule(static)
      do j3 = 2, nc - 1
         do j2 = 2, nc - 1
            call add_neighbours(fine, nf, 2*j2 - 1, 2*j3 - 1, face, edge)
            do j1 = 2, nc - 1
               i1 = 2*j1 - 1
               coarse(j1, j2, j3) = 0.5_dp*fine(i1, 2*j2 - 1, 2*j3 - 1) &
                                    + 0.25_dp*(fine(i1 - 1, 2*j2 - 1, 2*j3 - 1) &
                                               + fine(i1 + 1, 2*j2 - 1, 2*j3 - 1) + face(i1)) &
                                    + 0.125_dp*(face(i1 - 1) + face(i1 + 1) + edge(i1)) &
                                    + 0.0625_dp*(edge(i1 - 1) + edge(i1 + 1))
            end do
         end do
         call wrap_plane(coarse(:, :, j3), nc)
      end do
      !$omp end do
      call exchange_ghosts(coarse, nc)
      !$omp end parallel
   end subroutine

   ! fine = fine + Q coarse, trilinear. Coarse plane j3 gives fine planes 2 j3 - 1 and 2 j3, ghosts
   ! included, so that no exchange is needed.
   subroutine interpolate_to(coarse, nc, fine, nf)
      integer, intent(in) :: nc, nf
      real(dp), intent(in) :: coarse(nc, nc, nc)
      real(dp), intent(inout) :: fine(nf, nf, nf)
      real(dp) :: along2(most_points), along3(most_points), square(most_points)
      integer :: j2, j3
      !$omp parallel do schedule(static) default(none) shared(coarse, nc, fine, nf) &
      !$omp private(along2, along3, square, j2)
      do j3 = 1, nc - 1
         do j2 = 1, nc - 1
            along2(1:nc) = coarse(:, j2, j3) + coarse(:, j2 + 1, j3)
            along3(1:nc) = coarse(:, j2, j3) + coarse(:, j2, j3 + 1)
            square(1:nc) = coarse(:, j2, j3 + 1) + coarse(:, j2 + 1, j3 + 1) + along2(1:nc)
            call add_row(coarse(:, j2, j3), 1.0_dp, nc, fine(:, 2*j2 - 1, 2*j3 - 1), nf)
            call add_row(along2, 0.5_dp, nc, fine(:, 2*j2, 2*j3 - 1), nf)
            call add_row(along3, 0.5_dp, nc, fine(:, 2*j2 - 1, 2*j3), nf)
            call add_row(square, 0.25_dp, nc, fine(:, 2*j2, 2*j3), nf)
         end do
      end do
   end subroutine

   ! The two fine points of each coarse interval: on the coarse point and half way to the next.
   pure subroutine add_row(coarse, weight, nc, fine, nf)
      integer, intent(in) :: nc, nf
      real(dp), intent(in) :: coarse(nc), weight
      real(dp), intent(inout) :: fine(nf)
      integer :: j1
      do j1 = 1, nc - 1
         fine(2*j1 - 1) = fine(2*j1 - 1) + weight*coarse(j1)
         fine(2*j1) = fine(2*j1) + 0.5_dp*weight*(coarse(j1) + coarse(j1 + 1))
      end do
   end subroutine

   ! Root mean square over the inner points. One sum a plane, added in order: the same result for
   ! any number of threads.
   function norm(r, n) result(value)
      integer, intent(in) :: n
      real(dp), intent(in) :: r(n, n, n)
      real(dp) :: value
      real(dp) :: plane(most_points)
      integer :: i3
      !$omp parallel do schedule(static) default(none) shared(r, n, plane)
      do i3 = 2, n - 1
         plane(i3) = sum(r(2:n - 1, 2:n - 1, i3)**2)
      end do
      value = sqrt(sum(plane(2:n - 1))/real(n - 2, dp)**3)
   end function
end module
