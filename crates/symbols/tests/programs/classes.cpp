// What C++ programs allocate and how; the form of expectations is that of plain.c.
// SPDX-License-Identifier: MIT OR Apache-2.0
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")
#define NOINLINE __attribute__((noinline))

namespace mesh {
struct cell {
    double t;
    int kind;
};
double *field;
std::vector<double> table;
static std::vector<float> hidden;
} // namespace mesh

class Grid {
public:
    explicit Grid(std::size_t n);
    NOINLINE void grow(std::size_t n);

private:
    double *data_;
    std::vector<mesh::cell> cells_;
    std::unique_ptr<float[]> extra_;
};

Grid::Grid(std::size_t n)
    : data_(new double[n * 10]), //@ 80000 this->data_ double 8 [10000] member
      cells_(n * 11) { //@ 176000 this->cells_ cell 16 [11000] member
    KEEP(data_);
    extra_.reset(new float[n * 24]); //@ 96000 this->extra_ float 4 [24000] member
}

void Grid::grow(std::size_t n) {
    delete[] data_;
    data_ = new double[n * 13]; //@ 104000 this->data_ double 8 [13000] member
    cells_.resize(n * 30); //@ 480000 this->cells_ cell 16 [30000] member
}

template <typename T>
class View {
public:
    explicit View(std::size_t n) : n_(n), data_(new T[n]) {}
    ~View() { delete[] data_; }
    T &operator[](std::size_t i) { return data_[i]; }

private:
    std::size_t n_;
    T *data_;
};

struct Noisy {
    double x[4];
    ~Noisy() { KEEP(this); }
};

NOINLINE void arrays(std::size_t n) {
    double *u = new double[n * 15]; //@ 120000 u double 8 [15000] local
    KEEP(u);
    mesh::field = new double[n * 16]; //@ 128000 field double 8 [16000] global
    mesh::cell *cells = new mesh::cell[n * 17]; //@ 272000 cells cell 16 [17000] local
    KEEP(cells);
    Noisy *noisy = new Noisy[n * 18]; //@ 576008 noisy Noisy 32 [18000] local
    KEEP(noisy);
    delete[] noisy;
    auto *casted = static_cast<double *>(std::malloc(n * 152)); //@ 152000 casted double 8 [19000] local
    KEEP(casted);
    double **rows = new double *[n * 20]; //@ 160000 rows double_* 8 [20000] local
    for (int i = 0; i < 2; i++)
        rows[i] = new double[n * 21]; //@ 168000 rows[] double 8 [21000] member
    KEEP(rows);
    double(*matrix)[9] = new double[n][9]; //@ 72000 matrix double 8 [1000,9] local
    KEEP(matrix);
}

NOINLINE void vectors(std::size_t n) {
    std::vector<double> v(n * 23); //@ 184000 v double 8 [23000] local
    KEEP(v.data());
    std::vector<float> filled(n * 48, 1.5f); //@ 192000 filled float 4 [48000] local
    KEEP(filled.data());
    std::vector<mesh::cell> sized;
    sized.resize(n * 19); //@ 304000 sized cell 16 [19000] local
    KEEP(sized.data());
    std::vector<double> reserved;
    reserved.reserve(n * 25); //@ 200000 reserved double 8 [25000] local
    KEEP(reserved.data());
    mesh::table.resize(n * 26); //@ 208000 table double 8 [26000] global
    mesh::hidden.assign(n * 54, 1.0f); //@ 216000 hidden float 4 [54000] static
    std::vector<std::vector<double>> nested(2, std::vector<double>(n * 29)); //@ 232000 nested[] double 8 [29000] local
    KEEP(nested.data());
    std::unique_ptr<double[]> owned(new double[n * 30]); //@ 240000 owned double 8 [30000] local
    KEEP(owned.get());
    auto made = std::make_unique<float[]>(n * 62); //@ 248000 made float 4 [62000] local
    KEEP(made.get());
    std::shared_ptr<double> shared(new double[n * 32], [](double *p) { delete[] p; }); //@ 256000 shared double 8 [32000] local
    KEEP(shared.get());
    View<double> view(n * 33); //@ 264000 view double 8 [33000] local
    KEEP(&view);
    std::vector<double> *heap = new std::vector<double>(n * 36);
    KEEP(heap->data());
    int pushed_total = 70000;
    std::vector<int> pushed;
    for (int i = 0; i < pushed_total; i++)
        pushed.push_back(i); //@ 262144 pushed int 4 [65536] local
    KEEP(pushed.data());
}

NOINLINE std::vector<double> returned(std::size_t n) {
    std::vector<double> result(n * 35); //@ 280000 result double 8 [35000] local
    KEEP(result.data());
    return result;
}

int main(int argc, char **) {
    std::size_t n = static_cast<std::size_t>(argc) * 1000;
    Grid grid(n);
    grid.grow(n);
    KEEP(&grid);
    arrays(n);
    vectors(n);
    std::vector<double> got = returned(n);
    KEEP(got.data());
    return 0;
}
