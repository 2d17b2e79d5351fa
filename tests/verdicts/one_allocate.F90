! run: pays array=scattered rounds=2800 lab=700
! Two arrays are allocated by one statement. One thread initialises the second.
program one_allocate
  implicit none
  integer, parameter :: cells = 2**19
  integer :: i, round, rounds
  double precision, allocatable :: settled(:), scattered(:)
  character(16) :: word
  rounds = 2800
  call get_command_argument(1, word)
  if (word /= "") read (word, *) rounds
  allocate (settled(cells), scattered(cells))
  do i = 1, cells; scattered(i) = i; end do
  !$omp parallel do schedule(static)
  do i = 1, cells; settled(i) = i; end do
  do round = 1, rounds
    !$omp parallel do schedule(static)
    do i = 1, cells; settled(i) = 0.5d0 * (settled(i) + scattered(i)); end do
  end do
  print *, settled(77)
end program
