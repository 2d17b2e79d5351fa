! Allocatable arrays, array syntax (which becomes memset and memcpy), sections, pointers, derived
! types, strings.
module store
  implicit none
  real(8), allocatable :: field(:, :)
  real(8) :: fixed(100, 30) = 0d0
  integer :: counter = 0
  type cell
    real(8) :: x(3)
    integer :: id
    character(12) :: name
  end type cell
contains
  subroutine fill(n)
    integer, intent(in) :: n
    integer :: j
    allocate (field(n, n))
    field = 0d0
    do j = 1, n
      field(:, j) = dble(j)
    end do
    counter = counter + 1
  end subroutine fill
end module store

program arrays
  use store
  implicit none
  type(cell), allocatable :: cells(:), copies(:)
  real(8), pointer :: p(:)
  real(8), target :: line(200)
  real(8) :: small(3), other(3), m(12, 12), e(12, 12)
  complex(8) :: z(50)
  character(80) :: text
  integer :: i, k
  call fill(150)
  fixed = 2.5d0
  fixed(10:20, :) = fixed(20:30, :) + 1d0
  field(1:75, :) = field(76:150, :) * 2d0
  small = 0d0
  other = [1d0, 2d0, 3d0]
  small = other
  line = 1d0
  p => line(1:200:2)
  p = 3d0
  allocate (cells(40))
  do i = 1, 40
    cells(i)%x = dble(i)
    cells(i)%id = i
    write (cells(i)%name, '(a,i0)') 'cell', i
  end do
  copies = cells
  copies(:)%id = copies(:)%id + 100
  cells = [cells, copies]
  m = 0d0
  do i = 1, 12
    m(i, i) = dble(i)
  end do
  e = matmul(m, transpose(m))
  z = (1d0, 2d0)
  z(1:25) = z(26:50) * z(1:25)
  write (text, '(f12.3,1x,i6)') sum(fixed), sum(cells%id)
  read (text, *) other(1), k
  deallocate (field)
  call fill(80)
  print '(a,2f14.3,i6)', 'sums', sum(field), sum(line) + sum(small), size(cells)
  print '(a,f12.3,i8,2f10.2)', trim(cells(80)%name), other(1), k, real(sum(z)), aimag(sum(z))
  print '(f12.2,1x,i3,1x,l1)', sum(e), counter, any(merge(fixed, 0d0, fixed > 3d0) > 0)
  print '(3f8.2)', maxval(cells(1:3)%x(1)), dot_product(small, [1d0, 1d0, 1d0]), norm2(line)
end program arrays
