! run: pays array=temperature rounds=2400 lab=600
! One thread initialises an allocatable array.
program serial_allocatable
  implicit none
  integer, parameter :: rows = 1024, columns = 1024
  integer :: i, j, round, rounds
  double precision, allocatable :: temperature(:, :)
  character(16) :: word
  rounds = 2400
  call get_command_argument(1, word)
  if (word /= "") read (word, *) rounds
  allocate (temperature(rows, columns))
  do j = 1, columns
    do i = 1, rows; temperature(i, j) = i; end do
  end do
  do round = 1, rounds
    !$omp parallel do schedule(static) private(i)
    do j = 1, columns
      do i = 1, rows
        temperature(i, j) = 0.5d0 * temperature(i, j) + round
      end do
    end do
  end do
  print *, temperature(3, 4)
end program
