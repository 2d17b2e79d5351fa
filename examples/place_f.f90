! Places an array on a node before it is touched, checks where it is, and has each thread take its
! part to itself.
!
!    gfortran -fopenmp $(pkg-config --variable=fortran homenode) place_f.f90 \
!      $(pkg-config --libs homenode) -o place_f
!
! SPDX-License-Identifier: MIT OR Apache-2.0
program place_f
   use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int32_t, c_int64_t, c_loc, c_size_t
   use, intrinsic :: iso_fortran_env, only: error_unit
   use homenode
   implicit none
   integer, parameter :: n = 2**19
   real(c_double), allocatable, target :: a(:)
   integer(c_int32_t) :: nodes(64), cpu, node
   integer(c_size_t) :: count, bytes
   type(hn_node) :: info
   type(hn_placement) :: found
   integer :: i, k

   bytes = 8_c_size_t*n
   call must(hn_nodes(nodes, 64_c_size_t, count), 'nodes')
   do k = 1, int(count)
      call must(hn_node_info(nodes(k), info), 'node')
      if (info%memory == 0) cycle
      allocate (a(n))
      call must(hn_place(c_loc(a), bytes, nodes(k)), 'place')
      a = 0
      ! Pages that were in memory before, such as the one with the allocator's own words, are moved.
      call must(hn_move(c_loc(a), bytes, nodes(k), found), 'move')
      call must(hn_verify(c_loc(a), bytes, nodes(k), found), 'verify')
      print '(a,i0,a,i0,a)', 'node ', nodes(k), ': ', found%there, ' pages'
      deallocate (a)
   end do

   allocate (a(n))
!$omp parallel private(cpu, node)
   call must(hn_here(cpu=cpu, node=node), 'here')
!$omp do schedule(static)
   do i = 1, n
      a(i) = i
   end do
!$omp end do
!$omp end parallel
   if (sum(a) /= real(n, c_double)*(n + 1)/2) error stop 'the sum is wrong'
   if (hn_bind_cpu(-1_c_int32_t) /= HN_ENODE) error stop 'nonsense was accepted'
   if (index(hn_text(hn_last_error()), 'CPU -1') == 0) error stop 'the error does not name the CPU'
   print '(a)', 'ok'

contains

   subroutine must(code, what)
      integer(c_int), intent(in) :: code
      character(*), intent(in) :: what
      if (code == HN_OK) return
      write (error_unit, '(5a)') what, ': ', hn_text(hn_message(code)), ': ', hn_text(hn_last_error())
      error stop 1
   end subroutine
end program
