! Several neighbouring lines of the grid at once: what a solver reads of them is gathered so that
! the same point of all lines lies together, which makes the elimination along the lines a vector
! operation.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module adi_lines
   use adi_grid, only: dp, PRIMITIVES
   implicit none
   private
   public :: gather, scatter, WIDTH

   integer, parameter :: WIDTH = 8 ! lines

contains

   ! to(l, m, :) = line l of x, which begins `apart` numbers after line l - 1 and has `stride`
   ! numbers from point to point; quantity m lies m - 1 times ld after quantity 1. Lines beyond
   ! `lines` repeat the last one.
   pure subroutine gather(n, lines, apart, stride, ld, parts, x, to)
      integer, intent(in) :: n, lines, apart, stride, ld, parts
      real(dp), intent(in) :: x(*)
      real(dp), intent(out) :: to(WIDTH, parts, n)
      integer :: i, l, m, first
      do i = 1, n
         do m = 1, parts
            first = 1 + (i - 1)*stride + (m - 1)*ld
            if (apart == 1 .and. lines == WIDTH) then
               to(:, m, i) = x(first:first + WIDTH - 1)
            else
               do l = 1, WIDTH
                  to(l, m, i) = x(first + (min(l, lines) - 1)*apart)
               end do
            end if
         end do
      end do
   end subroutine

   ! The way back, without the two faces' points.
   pure subroutine scatter(n, lines, apart, stride, ld, parts, from, x)
      integer, intent(in) :: n, lines, apart, stride, ld, parts
      real(dp), intent(in) :: from(WIDTH, parts, n)
      real(dp), intent(inout) :: x(*)
      integer :: i, l, m, first
      do i = 2, n - 1
         do m = 1, parts
            first = 1 + (i - 1)*stride + (m - 1)*ld
            if (apart == 1 .and. lines == WIDTH) then
               x(first:first + WIDTH - 1) = from(:, m, i)
            else
               do l = 1, lines
                  x(first + (l - 1)*apart) = from(l, m, i)
               end do
            end if
         end do
      end do
   end subroutine
end module
