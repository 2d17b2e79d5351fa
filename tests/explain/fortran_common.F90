! explain: variable=pressure touched=12 fix=parallel-first-touch effect
! One thread initialises an array of a COMMON block.
subroutine start
  integer, parameter :: rows = 1024, columns = 1024
  double precision :: pressure(rows, columns)
  common /state/ pressure
  integer :: i, j
#ifdef FIXED
  !$omp parallel do schedule(static) private(i)
#endif
  do j = 1, columns
    do i = 1, rows; pressure(i, j) = i; end do
  end do
end subroutine

subroutine step(round)
  integer, parameter :: rows = 1024, columns = 1024
  double precision :: pressure(rows, columns)
  common /state/ pressure
  integer :: i, j, round
  !$omp parallel do schedule(static) private(i)
  do j = 1, columns
    do i = 1, rows
      pressure(i, j) = 0.5d0 * pressure(i, j) + round
    end do
  end do
end subroutine

program fortran_common
  integer, parameter :: rows = 1024, columns = 1024
  double precision :: pressure(rows, columns)
  common /state/ pressure
  integer :: round
  call start
  do round = 1, 10
    call step(round)
  end do
  print *, pressure(3, 4)
end program
