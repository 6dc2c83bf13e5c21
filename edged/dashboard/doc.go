// Package dashboard is the page that operators see in a browser: HTML, CSS and ES modules, written by hand, embedded, and
// served as they are (edged/admin does, at "/" and below "/ui/"). The page holds no data and no secret, so it needs no
// token; all that it shows it asks of the admin API, with the token that its user typed.
//
// It never asks another host for anything, and never makes markup out of data: its policy (policy.go) has the browser refuse
// both. It decides nothing: what a viewer may change is the edge's to say.
//
// The page's files are below page/: index.html, and in ui/ one module per noun. main.js joins them.
package dashboard
