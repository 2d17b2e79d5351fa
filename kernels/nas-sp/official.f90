! The official values of NAS SP, of the benchmark's published verification: norms of residual and
! error, time steps.
! SPDX-License-Identifier: MIT OR Apache-2.0
module official
   use adi_grid, only: dp
   implicit none
   private
   public :: time_step, official_norms

   character(len=*), parameter :: classes = 'SWAB'
   real(dp), parameter :: steps(4) = [0.015_dp, 0.0015_dp, 0.0015_dp, 0.001_dp]
   real(dp), parameter :: residuals(5, 4) = reshape([ &
      0.02747031545133948_dp, 0.010360746705285417_dp, 0.016235745065095532_dp, &
      0.015840557224455615_dp, 0.03484904060936246_dp, &
      0.001893253733584_dp, 0.0001717075447775_dp, 0.0002778153350936_dp, &
      0.0002887475409984_dp, 0.003143611161242_dp, &
      2.4799822399300195_dp, 1.1276337964368832_dp, 1.5028977888770492_dp, &
      1.421781621169518_dp, 2.129211303513828_dp, &
      69.03293579998_dp, 30.95134488084_dp, 41.03336647017_dp, &
      38.64769009604_dp, 56.43482272596_dp], [5, 4])
   real(dp), parameter :: errors(5, 4) = reshape([ &
      2.7289258557377225e-05_dp, 1.0364446640837285e-05_dp, 1.615479828716647e-05_dp, &
      1.57507049944801e-05_dp, 3.417766618339053e-05_dp, &
      7.542088599534e-05_dp, 6.512852253086e-06_dp, 1.049092285688e-05_dp, &
      1.128838671535e-05_dp, 0.0001212845639773_dp, &
      0.0001090014029782055_dp, 3.734395176928209e-05_dp, 5.009278540654163e-05_dp, &
      4.767109393952825e-05_dp, 0.00013621613399213_dp, &
      0.009810006190188_dp, 0.00102282790567_dp, 0.001720597911692_dp, &
      0.001694479428231_dp, 0.01847456263981_dp], [5, 4])

contains

   ! A size of one's own takes the step of the nearest class below.
   pure function time_step(letter) result(dt)
      character, intent(in) :: letter
      real(dp) :: dt
      dt = steps(index(classes, letter))
   end function

   ! Five norms of the residual, five of the error.
   pure function official_norms(letter) result(norms)
      character, intent(in) :: letter
      real(dp) :: norms(5, 2)
      norms(:, 1) = residuals(:, index(classes, letter))
      norms(:, 2) = errors(:, index(classes, letter))
   end function
end module
