C     Fixed form, common blocks, equivalence, data, an entry, goto, save.
      program common
      integer n, i
      parameter (n=5000)
      double precision a(n), b(n), s, twice
      common /shared/ a, b
      integer k(10), l(20)
      equivalence (k(1), l(5))
      data l /20*3/
      call init
      s = 0d0
      do 10 i = 1, n
         s = s + a(i)*b(i)
 10   continue
      do 20 i = 1, 10
         k(i) = k(i) + i
 20   continue
      s = s + twice(4d0)
      s = s + twice(5d0)
      write (*, '(f16.2,2i6)') s, l(5), l(14)
      if (s .lt. 0d0) goto 99
      stop 3
 99   stop 4
      end

      subroutine init
      integer n, i
      parameter (n=5000)
      double precision a(n), b(n)
      common /shared/ a, b
      do i = 1, n
         a(i) = i
         b(i) = mod(i, 7)
      end do
      end

      double precision function twice(x)
      double precision x
      integer calls
      save calls
      data calls /0/
      calls = calls + 1
      twice = 2*x + calls
      end
