
   ! A spec: chunks of k indices are dealt to the parts in turn.
   pure elemental function hn_cyclic(k) result(spec)
      integer, intent(in) :: k
      integer :: spec
      spec = k
   end function

   ! Distributes an array of any rank. Dimensions are Fortran's: spec(1) is of the first one, whose
   ! elements are neighbours. The array is contiguous. See hn_distribute in homenode.h.
   function distribute_r4(array, spec, over, handle) result(code)
      real(c_float), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 4, spec, over, handle)
   end function
   function distribute_r8(array, spec, over, handle) result(code)
      real(c_double), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 8, spec, over, handle)
   end function
   function distribute_i4(array, spec, over, handle) result(code)
      integer(c_int32_t), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 4, spec, over, handle)
   end function
   function distribute_i8(array, spec, over, handle) result(code)
      integer(c_int64_t), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 8, spec, over, handle)
   end function
   function distribute_c8(array, spec, over, handle) result(code)
      complex(c_double_complex), intent(in), target :: array(..)
      integer, intent(in) :: spec(:)
      integer, intent(in) :: over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      code = HN_EINVAL
      if (is_contiguous(array)) code = distribute_any(c_loc(array), shape(array), 16, spec, over, handle)
   end function

   function distribute_any(address, extents, element, spec, over, handle) result(code)
      type(c_ptr), intent(in) :: address
      integer, intent(in) :: extents(:), element, spec(:), over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      integer :: n
      n = size(extents)
      code = HN_EINVAL
      if (size(spec) /= n) return
      code = hn_distribute_c(address, int(extents(n:1:-1), c_size_t), int(element, c_size_t), int(n, c_int32_t), &
                             int(spec(n:1:-1), c_int64_t), int(over, c_int32_t), handle)
   end function

   ! Distributes the array of handle anew. spec(1) is of the first dimension.
   function hn_redistribute(handle, spec, over) result(code)
      type(hn_distribution), intent(inout) :: handle
      integer, intent(in) :: spec(:), over
      integer(c_int) :: code
      code = HN_EINVAL
      if (size(spec) /= handle%dims) return
      code = hn_redistribute_c(handle, int(spec(size(spec):1:-1), c_int64_t), int(over, c_int32_t))
   end function

   ! Allocates a distributed array in which no page has elements of two parts. Its address is
   ! handle%address; the first dimension has handle%leading elements:
   ! call c_f_pointer(handle%address, a, [int(handle%leading), n])
   function hn_alloc_padded(extents, element, spec, over, handle) result(code)
      integer, intent(in) :: extents(:), element, spec(:), over
      type(hn_distribution), intent(inout) :: handle
      integer(c_int) :: code
      integer :: n
      n = size(extents)
      code = HN_EINVAL
      if (size(spec) /= n) return
      code = hn_alloc_padded_c(int(extents(n:1:-1), c_size_t), int(element, c_size_t), int(n, c_int32_t), &
                               int(spec(n:1:-1), c_int64_t), int(over, c_int32_t), handle)
   end function

   ! The calling thread's number and the number of threads. Compile this file with the same option
   ! for OpenMP as the program.
   subroutine this_thread(thread, team)
!$    use omp_lib, only: omp_get_num_threads, omp_get_thread_num
      integer(c_int32_t), intent(out) :: thread, team
      thread = 0
      team = 1
!$    thread = int(omp_get_thread_num(), c_int32_t)
!$    team = int(omp_get_num_threads(), c_int32_t)
   end subroutine

   ! The calling thread's range of dimension dim (from 1): low to high, both included. high is below
   ! low where the range is empty. See hn_range in homenode.h.
   function range_i4(handle, dim, low, high) result(code)
      type(hn_distribution), intent(in) :: handle
      integer, intent(in) :: dim
      integer(c_int32_t), intent(out) :: low, high
      integer(c_int64_t) :: wide_low, wide_high
      integer(c_int) :: code
      code = range_i8(handle, dim, wide_low, wide_high)
      low = int(wide_low, c_int32_t)
      high = int(wide_high, c_int32_t)
   end function
   function range_i8(handle, dim, low, high) result(code)
      type(hn_distribution), intent(in) :: handle
      integer, intent(in) :: dim
      integer(c_int64_t), intent(out) :: low, high
      integer(c_int) :: code
      integer(c_int32_t) :: thread, team
      integer(c_size_t) :: from, to
      call this_thread(thread, team)
      code = hn_range_of(handle, handle%dims - int(dim, c_int32_t), thread, team, from, to)
      low = from + 1
      high = to
   end function

   ! The calling thread's next range of dimension dim (from 1): low to high, both included. cursor
   ! is 0 before the first call. HN_END: there is no further range. See hn_next in homenode.h.
   function next_i4(handle, dim, cursor, low, high) result(code)
      type(hn_distribution), intent(in) :: handle
      integer, intent(in) :: dim
      integer(c_int64_t), intent(inout) :: cursor
      integer(c_int32_t), intent(out) :: low, high
      integer(c_int64_t) :: wide_low, wide_high
      integer(c_int) :: code
      code = next_i8(handle, dim, cursor, wide_low, wide_high)
      low = int(wide_low, c_int32_t)
      high = int(wide_high, c_int32_t)
   end function
   function next_i8(handle, dim, cursor, low, high) result(code)
      type(hn_distribution), intent(in) :: handle
      integer, intent(in) :: dim
      integer(c_int64_t), intent(inout) :: cursor
      integer(c_int64_t), intent(out) :: low, high
      integer(c_int) :: code
      integer(c_int32_t) :: thread, team
      integer(c_size_t) :: from, to
      call this_thread(thread, team)
      from = 0
      to = 0
      code = hn_next_of(handle, handle%dims - int(dim, c_int32_t), thread, team, cursor, from, to)
      low = from + 1
      high = to
   end function

   ! Binds the calling thread to the node of its part. See hn_bind_share in homenode.h.
   function hn_bind_share(handle) result(code)
      type(hn_distribution), intent(in) :: handle
      integer(c_int) :: code
      integer(c_int32_t) :: thread, team
      call this_thread(thread, team)
      code = hn_bind_share_of(handle, thread, team)
   end function
