! run: nothing-to-gain rounds=1900 lab=475
! Arrays of a COMMON block, as NAS FT has them. All loops deal the same elements to the same
! threads.
subroutine start
  integer, parameter :: cells = 2**19
  double precision :: u0(cells), u1(cells), twiddle(cells)
  common /state/ u0, u1, twiddle
  integer :: i
  !$omp parallel do schedule(static)
  do i = 1, cells
    u0(i) = i
    u1(i) = 0
    twiddle(i) = 1d0 / i
  end do
end subroutine

subroutine evolve(round)
  integer, parameter :: cells = 2**19
  double precision :: u0(cells), u1(cells), twiddle(cells)
  common /state/ u0, u1, twiddle
  integer :: i, round
  !$omp parallel do schedule(static)
  do i = 1, cells
    u1(i) = 0.5d0 * u0(i) + twiddle(i)
    u0(i) = u1(i) + round
  end do
end subroutine

program same_schedule_common
  integer, parameter :: cells = 2**19
  double precision :: u0(cells), u1(cells), twiddle(cells)
  common /state/ u0, u1, twiddle
  character(16) :: word
  integer :: round, rounds
  rounds = 1900
  call get_command_argument(1, word)
  if (word /= "") read (word, *) rounds
  call start
  do round = 1, rounds
    call evolve(round)
  end do
  print *, u0(3), u1(4)
end program
