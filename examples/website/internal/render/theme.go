// SPDX-License-Identifier: Apache-2.0

// Package render renders the pages of a Website with a theme. It does not use Kubernetes; the same input gives the same
// bytes.
package render

import (
	"fmt"
	"html/template"
)

// The keys of a theme.
const (
	LayoutKey = "layout.html"
	StyleKey  = "style.css"
)

const plainLayout = `<!doctype html>
<html{{with .Language}} lang="{{.}}"{{end}}>
<head>
<meta charset="utf-8">
<title>{{.Title}} - {{.Site}}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav>{{range .Navigation}}<a href="{{.Href}}">{{.Title}}</a> {{end}}</nav>
<h1>{{.Title}}</h1>
{{range .Paragraphs}}<p>{{.}}</p>
{{end}}</body>
</html>
`

const plainStyle = "body { font-family: sans-serif; margin: 2rem auto; max-width: 40rem; }\n"

// Theme is how pages look.
type Theme struct {
	layout *template.Template
	style  string
}

// ParseTheme parses a theme. Missing keys are taken from the built-in theme, so nil returns the built-in theme. The
// error of a broken layout contains the position.
func ParseTheme(data map[string]string) (*Theme, error) {
	layout, ok := data[LayoutKey]
	if !ok {
		layout = plainLayout
	}
	style, ok := data[StyleKey]
	if !ok {
		style = plainStyle
	}
	parsed, err := template.New(LayoutKey).Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("the layout is broken: %w", err)
	}
	return &Theme{layout: parsed, style: style}, nil
}
