! A vector update on an array in blocks of columns: each thread works on the columns of its node.
!
!    gfortran -fopenmp $(pkg-config --variable=fortran homenode) distribute_f.f90 \
!      $(pkg-config --libs homenode) -o distribute_f
!
! Without the library, compile homenode_alone.c (beside homenode.f90) instead of linking it.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
program distribute_f
   use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int, c_int64_t
   use, intrinsic :: iso_fortran_env, only: error_unit
   use homenode
   implicit none
   integer, parameter :: n = 300
   real(c_double), allocatable, target :: a(:, :)
   real(c_double), pointer :: p(:, :)
   type(hn_distribution) :: columns, padded
   type(hn_spread) :: found
   integer(c_int64_t) :: cursor
   integer :: i, j, low, high

   allocate (a(n, n))
   a = 1
   call must(hn_distribute(a, [HN_STAR, HN_BLOCK], HN_OVER_NODES, columns), 'distribute')
!$omp parallel private(i, j, low, high)
   call must(hn_range(columns, 2, low, high), 'range')
   do j = low, high
      do i = 1, n
         a(i, j) = a(i, j) + i
      end do
   end do
!$omp end parallel
   if (abs(sum(a) - (real(n, c_double)*n + real(n, c_double)*n*(n + 1)/2)) > 1) error stop 'the sum is wrong'
   if (hn_verify_distribution(columns, found) > HN_IDLE .and. found%elsewhere > 0) error stop 'pages are elsewhere'
   print '(i0,a,i0,a,i0,a)', columns%grid(1), ' parts: ', found%there, ' of ', found%pages, ' pages at home'

   ! Columns in turn, each on pages of its own.
   call must(hn_alloc_padded([n, n], 8, [HN_STAR, HN_CYCLIC(1)], HN_OVER_NODES, padded), 'alloc')
   call c_f_pointer(padded%address, p, [int(padded%leading), n])
!$omp parallel private(i, j, low, high, cursor)
   cursor = 0
   do while (hn_next(padded, 2, cursor, low, high) == HN_OK)
      do j = low, high
         do i = 1, n
            p(i, j) = p(i, j) + 1
         end do
      end do
   end do
!$omp end parallel
   if (nint(sum(p(1:n, :))) /= n*n) error stop 'a column was left out, or done twice'
   call must(hn_free_padded(padded), 'free')

   ! What cannot be says so.
   if (hn_distribute(a, [HN_STAR], HN_OVER_NODES, columns) /= HN_EINVAL) error stop 'nonsense was accepted'
   if (hn_distribute(a(::2, :), [HN_STAR, HN_BLOCK], HN_OVER_NODES, columns) /= HN_EINVAL) &
      error stop 'an array with gaps was accepted'
   print '(a)', 'ok'

contains

   subroutine must(code, what)
      integer(c_int), intent(in) :: code
      character(*), intent(in) :: what
      if (code == HN_OK .or. code == HN_IDLE) return
      write (error_unit, '(5a)') what, ': ', hn_text(hn_message(code)), ': ', hn_text(hn_last_error())
      error stop 1
   end subroutine
end program
