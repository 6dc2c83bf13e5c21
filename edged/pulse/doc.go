// Package pulse remembers how an edge was doing: a sample for each of the last ten minutes' seconds and one for each of the
// last twelve hours' minutes.
//
// edged gives it what was counted since the start, once a second (Run); it keeps the differences, so the way of a request is
// not touched. The live feed and GET /pulse show them. It is in memory only, and it decides nothing: for longer times and
// alerts there are the metrics.
//
// Percentiles are read off histograms: the true value lies in the same bucket as the one that is told, which is placed in it
// as if the observations were spread evenly. With the bounds of edged/metrics (1, 2.5, 5, 10, … ms) a told value is less than
// 2.5 times too large or too small, mostly much nearer; below the lowest bound it is between 0 and that, and above the
// highest (ten minutes) it is that bound.
//
// Where next: pulse.go (what is kept), sample.go (one sample), quantile.go.
package pulse
