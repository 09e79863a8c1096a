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

// MaxFile is the maximum size of a rendered file, in bytes. A larger result is an error, so that the theme of one
// author cannot exhaust the memory of the controller.
const MaxFile = 256 << 10

// Page is one page in one language.
type Page struct {
	Name  string
	Title string
	Body  string
}

// view is the data of a layout.
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

// Site renders pages in one language; "" is the original one. The result has one file for each page, named <name>.html,
// and the style sheet of the theme.
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

// Translate returns the pages, with translated pages in place of the original ones.
func Translate(pages, translated []Page) []Page {
	result := slices.Clone(pages)
	for i := range result {
		if t := slices.IndexFunc(translated, func(p Page) bool { return p.Name == result[i].Name }); t >= 0 {
			result[i] = translated[t]
		}
	}
	return result
}

// Hash returns a short hash of all files and paths.
func Hash(files map[string]map[string]string) string {
	sum := sha256.New()
	encoder := json.NewEncoder(sum) // quotes: two different sets of files never have the same encoding
	for _, path := range slices.Sorted(maps.Keys(files)) {
		for _, name := range slices.Sorted(maps.Keys(files[path])) {
			if err := encoder.Encode([]string{path, name, files[path][name]}); err != nil {
				panic(err) // strings can always be encoded, and a hash accepts every write
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

// limitedBuilder fails when a template writes too much.
type limitedBuilder struct{ strings.Builder }

var errTooLarge = errors.New("the layout writes more than 256 KiB")

func (b *limitedBuilder) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxFile {
		return 0, errTooLarge
	}
	return b.Builder.Write(p)
}
