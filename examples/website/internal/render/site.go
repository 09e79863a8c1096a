// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxFile is the size, in bytes, of the largest file that is rendered. A layout that writes more is an error: what one
// author put into a theme must not fill the memory of a controller that works for many.
const MaxFile = 256 << 10

// Page is one page in one language.
type Page struct {
	Name  string
	Title string
	Body  string
}

// view is what a layout can use.
type view struct {
	Site       string
	Language   string
	Title      string
	Paragraphs []string
	Navigation []link
}

type link struct {
	Href  string
	Title string
}

// Site renders pages in one language, "" being the original one. The result has a file per page, named <name>.html, and
// the style sheet of the theme.
func (t *Theme) Site(domain, language string, pages []Page) (map[string]string, error) {
	files := map[string]string{StyleKey: t.style}
	navigation := make([]link, len(pages))
	for i, page := range pages {
		navigation[i] = link{Href: page.Name + ".html", Title: page.Title}
	}
	for _, page := range pages {
		var file limitedBuilder
		err := t.layout.Execute(&file, view{
			Site:       domain,
			Language:   language,
			Title:      page.Title,
			Paragraphs: paragraphs(page.Body),
			Navigation: navigation,
		})
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", page.Name, err)
		}
		files[page.Name+".html"] = file.String()
	}
	return files, nil
}

// Translate returns the pages with the translated ones in their places.
func Translate(pages, translated []Page) []Page {
	result := slices.Clone(pages)
	for i := range result {
		if t := slices.IndexFunc(translated, func(p Page) bool { return p.Name == result[i].Name }); t >= 0 {
			result[i] = translated[t]
		}
	}
	return result
}

// Hash is short, and differs when any file or path differs.
func Hash(files map[string]map[string]string) string {
	sum := sha256.New()
	encoder := json.NewEncoder(sum) // quotes: no two sets of files run together into the same bytes
	for _, path := range slices.Sorted(maps.Keys(files)) {
		for _, name := range slices.Sorted(maps.Keys(files[path])) {
			if err := encoder.Encode([]string{path, name, files[path][name]}); err != nil {
				panic(err) // strings always encode, and a hash takes every write
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

func paragraphs(body string) []string {
	var result []string
	for text := range strings.SplitSeq(body, "\n\n") {
		if text = strings.TrimSpace(text); text != "" {
			result = append(result, text)
		}
	}
	return result
}

// limitedBuilder ends a template that writes too much.
type limitedBuilder struct{ strings.Builder }

var errTooLarge = errors.New("the layout writes more than 256 KiB")

func (b *limitedBuilder) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxFile {
		return 0, errTooLarge
	}
	return b.Builder.Write(p)
}
