! SPDX-License-Identifier: MIT OR Apache-2.0
program nas_adi
   use adi_program, only: run
   implicit none
   call run()
end program
