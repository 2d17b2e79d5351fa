// Containers, strings, streams, algorithms, smart pointers.
#include <algorithm>
#include <deque>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
struct Square : Shape { double a; explicit Square(double x) : a(x) {} double area() const override { return a * a; } };
struct Disc : Shape { double r; explicit Disc(double x) : r(x) {} double area() const override { return 3 * r * r; } };

int main() {
    std::vector<int> v(10000);
    std::iota(v.begin(), v.end(), 0);
    std::reverse(v.begin(), v.begin() + 5000);
    auto w = v;
    std::sort(w.begin(), w.end());
    for (int i = 0; i < 1000; i++) w.insert(w.begin() + i, i);
    std::map<std::string, int> m;
    std::unordered_map<int, std::string> u;
    for (int i = 0; i < 500; i++) m["key" + std::to_string(i * 37 % 500)] = i, u[i] = std::string(i % 60, 'x');
    std::size_t letters = 0;
    for (auto &e : u) letters += e.second.size();
    std::deque<long> d;
    std::list<int> l;
    std::set<int> s;
    for (int i = 0; i < 3000; i++) d.push_front(i), l.push_back(i), s.insert(i % 100);
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 50; i++) {
        if (i % 2) shapes.push_back(std::make_unique<Square>(i)); else shapes.push_back(std::make_unique<Disc>(i));
    }
    double area = 0;
    for (auto &p : shapes) area += p->area();
    auto shared = std::make_shared<std::vector<int>>(100, 3);
    std::weak_ptr<std::vector<int>> weak = shared;
    auto other = shared;
    std::ostringstream out;
    out << m.begin()->first << ' ' << m["key17"] << ' ' << letters << ' ' << d.front() << ' ' << l.size() << ' ' << s.size();
    std::istringstream in("12 3.5 word");
    int i; double x; std::string word;
    in >> i >> x >> word;
    std::cout << out.str() << '\n' << area << ' ' << w.size() << ' ' << w[700] << ' ' << shared.use_count() << ' '
              << weak.expired() << ' ' << i << ' ' << x << ' ' << word << std::endl;
    return 0;
}
