// Package trend tells growth from noise in a series of measurements at equal intervals.
//
// The slope is the median of the slopes between all pairs (Theil and Sen), which a few
// odd measurements do not move. Its interval comes from Kendall's statistic: among n
// values in random order, the number of pairs that rise less those that fall has a
// variance of n(n-1)(2n+5)/18, whatever the distribution of the values is. (Sen 1968,
// "Estimates of the regression coefficient based on Kendall's tau".)
package trend
