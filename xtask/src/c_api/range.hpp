
#if defined(__cplusplus) && __cplusplus >= 201103L
#include <initializer_list>

namespace homenode {

/* The indices of one dimension that the calling thread works on:
 *
 *     #pragma omp parallel
 *     for (std::size_t i : array.mine(0))
 *         …
 */
class indices {
  public:
    class iterator {
      public:
        iterator(const hn_distribution *of, int32_t dim, bool is_end)
            : of_(of), dim_(dim), cursor_(0), at_(0), end_(0), is_end_(is_end) {
            if (!is_end_)
                next();
        }
        std::size_t operator*() const { return at_; }
        iterator &operator++() {
            if (++at_ == end_)
                next();
            return *this;
        }
        bool operator!=(const iterator &other) const { return is_end_ != other.is_end_; }

      private:
        void next() { is_end_ = hn_next(of_, dim_, &cursor_, &at_, &end_) != HN_OK; }
        const hn_distribution *of_;
        int32_t dim_;
        uint64_t cursor_;
        std::size_t at_, end_;
        bool is_end_;
    };
    indices(const hn_distribution *of, int32_t dim) : of_(of), dim_(dim) {}
    iterator begin() const { return iterator(of_, dim_, false); }
    iterator end() const { return iterator(of_, dim_, true); }

  private:
    const hn_distribution *of_;
    int32_t dim_;
};

/* A distributed array: the memory is the program's own. */
class distribution {
  public:
    /* As hn_distribute. code() is its answer; HN_IDLE where there is no homenode. */
    template <class T>
    distribution(T *address, std::initializer_list<std::size_t> extents, std::initializer_list<int64_t> spec,
                 int32_t over = HN_OVER_NODES)
        : handle_(), code_(HN_EINVAL) {
        if (extents.size() == spec.size())
            code_ = hn_distribute(address, extents.begin(), sizeof(T), (int32_t)extents.size(), spec.begin(), over, &handle_);
    }
    int code() const { return code_; }
    const hn_distribution &handle() const { return handle_; }
    /* The calling thread's indices of a dimension. */
    indices mine(int32_t dim) const { return indices(&handle_, dim); }
    /* As hn_redistribute. */
    int redistribute(std::initializer_list<int64_t> spec, int32_t over = HN_OVER_NODES) {
        if ((std::size_t)handle_.dims != spec.size())
            return HN_EINVAL;
        return code_ = hn_redistribute(&handle_, spec.begin(), over);
    }
    /* As hn_verify_distribution. */
    int verify(hn_spread *found = nullptr) const { return hn_verify_distribution(&handle_, found); }

  private:
    hn_distribution handle_;
    int code_;
};

} /* namespace homenode */
#endif
