! Scalar pentadiagonal systems along WIDTH lines at once, x = 0 on the faces and beyond.
!
! Source: The NAS Parallel Benchmarks, RNR-94-007. The convective part is diagonalised: three of the
! five characteristic quantities move with the flow (one matrix), the others with the flow plus and
! minus the speed of sound. Diffusion is that of the fastest-decaying quantity: the largest of 4/3,
! c1 c5 and 1 times c3 c4 / density, as all momenta have one second-difference coefficient and
! densities are positive. Dissipation is the right-hand side's.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module sp_pentadiagonal
   use adi_grid
   use adi_lines, only: WIDTH
   implicit none
   private
   public :: solve_lines

contains

   ! In: the velocity along the lines, 1 / density, the speed of sound. r: five right-hand sides,
   ! then the solutions.
   pure subroutine solve_lines(g, direction, velocity, inverse, sound, r)
      type(grid), intent(in) :: g
      integer, intent(in) :: direction
      real(dp), intent(in), dimension(WIDTH, g%n) :: velocity, inverse, sound
      real(dp), intent(inout) :: r(WIDTH, 5, g%n)
      real(dp), dimension(WIDTH, g%n) :: low, centre, high
      r(:, :, 1) = 0
      r(:, :, g%n) = 0
      call rows(g, direction, velocity, inverse, low, centre, high)
      call solve(g, 1, 3, 0.0_dp, sound, low, centre, high, r)
      call solve(g, 4, 4, g%dt*g%t2, sound, low, centre, high, r)
      call solve(g, 5, 5, -g%dt*g%t2, sound, low, centre, high, r)
   end subroutine

   ! The three middle diagonals without dissipation and sound.
   pure subroutine rows(g, direction, velocity, inverse, low, centre, high)
      type(grid), intent(in) :: g
      integer, intent(in) :: direction
      real(dp), intent(in), dimension(WIDTH, g%n) :: velocity, inverse
      real(dp), intent(out), dimension(WIDTH, g%n) :: low, centre, high
      real(dp) :: d, diffusion(WIDTH, g%n), by_velocity, by_diffusion
      integer :: i
      d = g%d(direction)
      by_velocity = g%dt*g%t2
      by_diffusion = g%dt*g%t1
      do i = 1, g%n
         diffusion(:, i) = by_diffusion*(d + max(con43, c1c5, 1.0_dp)*c3c4*inverse(:, i))
      end do
      do i = 2, g%n - 1
         low(:, i) = -by_velocity*velocity(:, i - 1) - diffusion(:, i - 1)
         centre(:, i) = 1.0_dp + 2.0_dp*diffusion(:, i)
         high(:, i) = by_velocity*velocity(:, i + 1) - diffusion(:, i + 1)
      end do
   end subroutine

   ! Elimination and substitution of quantities first .. last, whose matrix has `sound` times +- the
   ! speed of sound.
   pure subroutine solve(g, first, last, by_sound, sound, low, centre, high, r)
      type(grid), intent(in) :: g
      integer, intent(in) :: first, last
      real(dp), intent(in) :: by_sound
      real(dp), intent(in), dimension(WIDTH, g%n) :: sound, low, centre, high
      real(dp), intent(inout) :: r(WIDTH, 5, g%n)
      real(dp), dimension(WIDTH, 0:g%n) :: one, two ! the eliminated rows' two upper diagonals
      real(dp) :: w(5), factor(WIDTH), inverse(WIDTH)
      integer :: i, m
      one(:, 0:1) = 0
      two(:, 0:1) = 0
      do i = 2, g%n - 1
         w = g%dt*g%dissipation*weights(i, g%n)
         factor = low(:, i) + w(2) - by_sound*sound(:, i - 1) - w(1)*one(:, i - 2)
         inverse = 1.0_dp/(centre(:, i) + w(3) - w(1)*two(:, i - 2) - factor*one(:, i - 1))
         one(:, i) = (high(:, i) + w(4) + by_sound*sound(:, i + 1) - factor*two(:, i - 1))*inverse
         two(:, i) = w(5)*inverse
         do m = first, last
            r(:, m, i) = (r(:, m, i) - w(1)*r(:, m, max(i - 2, 1)) - factor*r(:, m, i - 1))*inverse
         end do
      end do
      do i = g%n - 2, 2, -1
         do m = first, last
            r(:, m, i) = r(:, m, i) - one(:, i)*r(:, m, i + 1) - two(:, i)*r(:, m, i + 2)
         end do
      end do
   end subroutine

   ! Fourth differences at a point of a line of n points; see adi_rhs.
   pure function weights(place, n) result(w)
      integer, intent(in) :: place, n
      real(dp) :: w(5)
      w = [1.0_dp, -4.0_dp, 6.0_dp, -4.0_dp, 1.0_dp]
      if (place == 2) w(1:3) = [0.0_dp, 0.0_dp, 5.0_dp]
      if (place == 3) w(1) = 0
      if (place == n - 2) w(5) = 0
      if (place == n - 1) w(3:5) = [5.0_dp, 0.0_dp, 0.0_dp]
   end function
end module
