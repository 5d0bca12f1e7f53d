module gowriters

go 1.22
