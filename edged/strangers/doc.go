// Package strangers is what the doors of the links do with connections that have not proved themselves: there is room for a
// bounded number (Threshold), and what is wrong with them is no flood of the log (Complaints). nodelink and peerlink have a
// door each; who proves himself how is theirs.
package strangers
