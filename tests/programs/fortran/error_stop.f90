! error stop in a subroutine after output; unformatted scratch file before it.
program error_stop
  implicit none
  real(8) :: a(1000), b(1000)
  integer :: i
  a = [(i * 1.25d0, i=1, 1000)]
  open (10, status='scratch', form='unformatted')
  write (10) a
  rewind (10)
  read (10) b
  close (10)
  print '(f12.2)', sum(b)
  flush (6)
  call fail(b(1))
contains
  subroutine fail(x)
    real(8), intent(in) :: x
    if (x > 1) error stop 2
  end subroutine fail
end program error_stop
