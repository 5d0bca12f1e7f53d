module github.com/customlabels/otelcol-customlabels/testdata/unwind/golang

go 1.24
