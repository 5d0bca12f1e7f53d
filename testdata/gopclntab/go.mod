module gopclntab

go 1.22
