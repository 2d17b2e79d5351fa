! What Fortran programs allocate and how; the form of expectations is that of plain.c.
! SPDX-License-Identifier: MIT OR Apache-2.0
module grids
  implicit none
  type cell
    real(8) :: t
    integer :: kind
  end type
  type box
    integer :: n
    real(8), allocatable :: u(:,:)
    real(8), pointer :: v(:)
  end type
  real(8), allocatable :: field(:,:,:)
  real(4), pointer :: target_of(:)
  real(8) :: fixed(0:9,-2:7,300)
contains
  subroutine make(a, n)
    integer, intent(in) :: n
    real(8), allocatable, intent(out) :: a(:)
    allocate(a(n)) !@ 160000 a real(kind=8) 8 [20000] parameter
    a = 1
  end subroutine

  subroutine local(n)
    integer, intent(in) :: n
    integer(8), allocatable :: counts(:)
    real(8), allocatable :: w(:), x(:), &
      y(:)
    allocate(counts(0:n+20999)) !@ 248000 counts integer(kind=8) 8 [31000] local
    counts = n
    allocate(w(n+22000), & !@ 256000 w real(kind=8) 8 [32000] local
      & x(n+23000), y(n+24000)) !@ 264000 x real(kind=8) 8 [33000] local !@ 272000 y real(kind=8) 8 [34000] local
    w = 1; x = 2; y = 3
    call use_array(w, size(w)); call use_array(x, size(x)); call use_array(y, size(y))
    if (sum(counts) < 0) print *, counts
  end subroutine

  subroutine use_array(q, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: q(n)
    if (q(n) < 0) print *, q
  end subroutine

  subroutine boxed(bx, n)
    type(box), intent(inout) :: bx
    integer, intent(in) :: n
    allocate(bx%u(n,35)) !@ 2800000 bx%u real(kind=8) 8 [?,?] member
    bx%u = 4
  end subroutine
end module

program main
  use grids
  implicit none
  integer :: n, ierr, i
  real(8), allocatable :: a(:), b(:,:)
  real(4), pointer :: c(:)
  type(cell), allocatable :: cells(:)
  type(box) :: bx, other
  real(8) :: common_u(100,100), common_v(50,50)
  common /blk/ common_u, common_v
  n = 10000 + command_argument_count()
  allocate(a(n), b(n,5), stat=ierr) !@ 80000 a real(kind=8) 8 [10000] local !@ 400000 b real(kind=8) 8 [?,?] local
  allocate(c(n*3)) !@ 120000 c real(kind=4) 4 [30000] local
  allocate(cells(n*6)) !@ 960000 cells type(cell) 16 [60000] local
  allocate(field(n,2,3)) !@ 480000 field real(kind=8) 8 [?,?,?] global
  allocate(bx%u(n,4)) !@ 320000 bx%u real(kind=8) 8 [?,?] member
  allocate(bx%v(n*7)) !@ 560000 bx%v real(kind=8) 8 [70000] member
  allocate(target_of(n*9)) !@ 360000 target_of real(kind=4) 4 [90000] global
  a = 1; b = 2; c = 3; field = 2; bx%u = 2; bx%v = 4; target_of = 3
  do i = 1, n
    cells(i)%t = 4; cells(i)%kind = i
  end do
  common_u = 4; common_v = 3; fixed = 5
  print *, sum(a), sum(b), sum(c), cells(3)%t, sum(field), sum(bx%u), sum(bx%v), ierr
  deallocate(a)
  call make(a, n*2)
  call local(n)
  call boxed(other, n)
  print *, sum(a), sum(other%u), sum(common_u), sum(common_v), sum(fixed), sum(target_of)
end program
