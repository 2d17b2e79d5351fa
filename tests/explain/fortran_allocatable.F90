! explain: variable=temperature line=8 touched=13 fix=parallel-first-touch call=HN_BLOCK effect
! One thread initialises an allocatable array.
program fortran_allocatable
  implicit none
  integer, parameter :: rows = 1024, columns = 1024
  integer :: i, j, round
  double precision, allocatable :: temperature(:, :)
  allocate (temperature(rows, columns))
#ifdef FIXED
  !$omp parallel do schedule(static) private(i)
#endif
  do j = 1, columns
    do i = 1, rows; temperature(i, j) = i; end do
  end do
  do round = 1, 10
    !$omp parallel do schedule(static) private(i)
    do j = 1, columns
      do i = 1, rows
        temperature(i, j) = 0.5d0 * temperature(i, j) + round
      end do
    end do
  end do
  print *, temperature(3, 4)
end program
