! The official values of NAS BT, of the benchmark's published verification: norms of residual and
! error, time steps.
! SPDX-License-Identifier: MIT OR Apache-2.0
module official
   use adi_grid, only: dp
   implicit none
   private
   public :: time_step, official_norms

   character(len=*), parameter :: classes = 'SWAB'
   real(dp), parameter :: steps(4) = [0.01_dp, 0.0008_dp, 0.0008_dp, 0.0003_dp]
   real(dp), parameter :: residuals(5, 4) = reshape([ &
      0.17034283709541312_dp, 0.012975252070034096_dp, 0.032527926989486054_dp, &
      0.0264364212751668_dp, 0.1921178413174443_dp, &
      112.5590409344_dp, 11.80007595731_dp, 27.10329767846_dp, &
      24.69174937669_dp, 263.8427874317_dp, &
      108.06346714637264_dp, 11.319730901220813_dp, 25.974354511582465_dp, &
      23.66562254467891_dp, 252.78963211748345_dp, &
      1423.3597229287254_dp, 99.33052259015024_dp, 356.46025644535285_dp, &
      324.8544795908409_dp, 3270.7541254659363_dp], [5, 4])
   real(dp), parameter :: errors(5, 4) = reshape([ &
      0.0004997691334581158_dp, 4.519566678296193e-05_dp, 7.397376517292135e-05_dp, &
      7.382123863243973e-05_dp, 0.0008926963098749145_dp, &
      4.419655736008_dp, 0.4638531260002_dp, 1.011551749967_dp, &
      0.9235878729944_dp, 10.18045837718_dp, &
      4.2348416040525025_dp, 0.443902824969957_dp, 0.9669248013634565_dp, &
      0.8830206303976548_dp, 9.737990177082928_dp, &
      52.96984714093686_dp, 4.463289611567067_dp, 13.122573342210174_dp, &
      12.006925323559145_dp, 124.59576151035986_dp], [5, 4])

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
