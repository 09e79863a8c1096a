// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// words are phrases that readers of a second language stumble over, and what to write instead. The check keeps out the
// most frequent ones; it does not replace a reader.
var words = []struct{ pattern, reason, write string }{
	{`\b(some|no)body\b|\bwhoever\b`, "hides who acts", "another client, the caller"},
	{`\b(tells?|told) (of|apart|whether)\b`, "is no term", "reports whether, warns about, distinguishes"},
	{`\b(is|are) (not )?there (any ?more|no more|twice|already|yet)\b`, "is a riddle", "no longer exists, already exists"},
	{`\bis there no more\b|\bnot there any ?more\b|\bstill there\b`, "is a riddle", "no longer exists, still exists"},
	{`\bcomes? of (it|that|them)\b|\bwhat (has )?(come|became?) of\b`, "is a riddle", "results from, the result of"},
	{`\bto do without\b|\bin vain\b|\ball the same\b`, "is an idiom", "to disable, without an effect, nevertheless"},
	{`\bis (?-i:true) (when|if|while)\b`, "is not how Go documents a bool", "reports whether"},
	{`\b(has|have) not (the|a|an)\b`, "is not English word order", "does not have the"},
	{`\blooks? (whether|at whether|for whether)\b`, "is not English", "checks whether"},
	{`\bis no (fault|error|kind|conflict|transition|object|failure|difference)\b`, "negates the noun", "is not a"},
	{`\bletter for letter\b|\bthe very same\b|\banew\b`, "is an idiom", "identical, the same, again"},
	{`\bsub resources?\b`, "is not the term", "subresource"},
	{
		`\b(behaviour|recognis\w+|honour\w*|neighbour\w*|defence|catalogue|cancelled|initialis\w+|colour\w*)\b`,
		"is not US spelling", "behavior, recognize, honor, neighbor, defense, catalog, canceled, initialize, color",
	},
}

func TestWords(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(words))
	for i, w := range words {
		patterns[i] = regexp.MustCompile(`(?i:` + w.pattern + `)`)
	}
	for _, file := range sourceFiles(t) {
		if file.path == "internal/tests/architecture/words_test.go" {
			continue
		}
		for _, text := range file.texts() {
			for i, pattern := range patterns {
				for _, found := range pattern.FindAllString(text.text, -1) {
					t.Errorf("%s:%d: %q %s: write %s", file.path, text.line, found, words[i].reason, words[i].write)
				}
			}
		}
	}
}

type readText struct {
	line int
	text string
}

// texts returns what people read: comments and string literals of Go files, and Markdown without its code.
func (f sourceFile) texts() []readText {
	if f.isGo() {
		return textsOfGo([]byte(f.content))
	}
	return textsOfMarkdown(f.content)
}

func textsOfGo(content []byte) (texts []readText) {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, scanner.ScanComments)
	for {
		position, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return texts
		case token.COMMENT:
			texts = append(texts, readText{file.Line(position), literal})
		case token.STRING:
			if text, err := strconv.Unquote(literal); err == nil {
				texts = append(texts, readText{file.Line(position), text})
			}
		}
	}
}

var codeSpan = regexp.MustCompile("`[^`]*`")

func textsOfMarkdown(content string) (texts []readText) {
	fenced, number := false, 0
	for line := range strings.Lines(content) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			texts = append(texts, readText{number, codeSpan.ReplaceAllString(line, "")})
		}
	}
	return texts
}
