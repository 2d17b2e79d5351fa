! OpenMP in Fortran: do, schedules, reductions, workshare, sections, critical, atomic, tasks,
! threadprivate common.
program omp_do
  use omp_lib
  implicit none
  integer, parameter :: n = 20000
  real(8) :: x(n), y(n), s, m
  integer(8) :: total, mine
  integer :: i, j, hits, a(64), team
  common /tp/ mine
  !$omp threadprivate(/tp/)
  !$omp parallel do
  do i = 1, n
    x(i) = i * 0.5d0
  end do
  !$omp parallel workshare
  y = 2d0 * x
  !$omp end parallel workshare
  total = 0; hits = 0; m = 0; team = 0
  !$omp parallel default(shared) private(j)
  !$omp single
  team = omp_get_num_threads()
  !$omp end single
  mine = 0
  !$omp do schedule(dynamic, 37) reduction(+:total)
  do i = 1, n
    total = total + int(y(i), 8)
    mine = mine + 1
  end do
  !$omp end do
  !$omp do schedule(guided) reduction(max:m)
  do i = 1, n
    m = max(m, abs(y(i) - 100d0))
  end do
  !$omp end do nowait
  !$omp do schedule(runtime)
  do i = 1, 64
    a(i) = i
  end do
  !$omp end do
  !$omp critical
  hits = hits + int(mine)
  !$omp end critical
  !$omp atomic
  total = total + 1
  !$omp sections
  !$omp section
  a(1) = 100
  !$omp section
  a(2) = 200
  !$omp end sections
  !$omp end parallel
  !$omp parallel
  !$omp single
  do i = 3, 64
    !$omp task firstprivate(i) shared(a)
    a(i) = a(i) * 2
    !$omp end task
  end do
  !$omp end single
  !$omp end parallel
  s = 0
  !$omp parallel do reduction(+:s) collapse(2)
  do j = 1, 10
    do i = 1, 100
      s = s + i * j
    end do
  end do
  print '(i14,i8,f12.1,i8,f10.1,i4)', total - team, hits, m, sum(a), s, team
end program omp_do
