// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// words are phrases that readers of a second language stumble over, and what to write instead. The check keeps out the
// most frequent ones; it does not replace a reader.
var words = []struct {
	pattern, reason, write string
	// except matches what the pattern finds and is plain English.
	except string
	// prose limits the check to comments and guides: users' tests pin some messages.
	prose bool
}{
	{pattern: `\b(some|no)body\b|\bwhoever\b`, reason: "hides who acts", write: "another client, the caller"},
	{
		pattern: `\b(tells?|told) (of|apart|whether)\b`, reason: "is no term",
		write: "reports whether, warns about, distinguishes",
	},
	{
		pattern: `\b(is|are) (not )?there (any ?more|no more|twice|already|yet)\b`, reason: "is a riddle",
		write: "no longer exists, already exists",
	},
	{
		pattern: `\bis there no more\b|\bnot there any ?more\b|\bstill there\b`, reason: "is a riddle",
		write: "no longer exists, still exists",
	},
	{
		pattern: `\bcomes? of (it|that|them)\b|\bwhat (has )?(come|became?) of\b`, reason: "is a riddle",
		write: "results from, the result of",
	},
	{
		pattern: `\bto do without\b|\bin vain\b|\ball the same\b`, reason: "is an idiom",
		write: "to disable, without an effect, nevertheless",
	},
	{pattern: `\bis (?-i:true) (when|if|while)\b`, reason: "is not how Go documents a bool", write: "reports whether"},
	{pattern: `\b(has|have) not (the|a|an)\b`, reason: "is not English word order", write: "does not have the"},
	{pattern: `\blooks? (whether|at whether|for whether)\b`, reason: "is not English", write: "checks whether"},
	{
		pattern: `\bis no (fault|error|kind|conflict|transition|object|failure|difference)\b`, reason: "negates the noun",
		write: "is not a",
	},
	{
		pattern: `\bletter for letter\b|\bthe very same\b|\banew\b`, reason: "is an idiom",
		write: "identical, the same, again",
	},
	{pattern: `\bsub resources?\b`, reason: "is not the term", write: "subresource"},
	{
		pattern: `\b(behaviour|recognis\w+|honour\w*|neighbour\w*|defence|catalogue|cancelled|initialis\w+|colour\w*)\b|` +
			`\b(labell\w+|travell\w+|modelled)\b`,
		reason: "is not US spelling",
		write:  "behavior, recognize, honor, neighbor, defense, catalog, canceled, initialize, color, labeled, traveled",
	},
	{
		pattern: `\bthose of\b|\bthat of (the|a|an|each|its|this|another|one)\b`, reason: "is a riddle of pronouns",
		write: "the name of the thing again", prose: true,
	},
	{
		pattern: `\w+,? of which\b`, reason: "is a riddle of pronouns", write: "two sentences",
		except: `^(one|each|some|all|any|none|two|three|first|most|half|regardless) of which$`, prose: true,
	},
	{
		pattern: `\w+ (is|are) no \w+`, reason: "negates the noun", write: "is not a, means no",
		except: `^there |(longer|more|less|later|earlier|newer|older|other|further|such)$`,
	},
	{pattern: `\balso not\b`, reason: "is not English", write: "not even, nor"},
	{pattern: `\bfor ever\b`, reason: "is not a length of time", write: "indefinitely, until"},
	{pattern: `\ban advice\b`, reason: "is not countable", write: "advice"},
	{pattern: `\b(desired|declared|needed|listed|used) no more\b`, reason: "is not the word order", write: "no longer"},
	{pattern: `\bsub[ -]reconcilers?\b`, reason: "is not the term", write: "subreconciler", prose: true},
}

func TestWords(t *testing.T) {
	patterns, exceptions := make([]*regexp.Regexp, len(words)), make([]*regexp.Regexp, len(words))
	for i, w := range words {
		patterns[i] = regexp.MustCompile(`(?i:` + w.pattern + `)`)
		if w.except != "" {
			exceptions[i] = regexp.MustCompile(`(?i:` + w.except + `)`)
		}
	}
	for _, file := range sourceFiles(t) {
		if file.path == "internal/tests/architecture/words_test.go" {
			continue
		}
		for _, text := range file.texts() {
			for i, pattern := range patterns {
				if words[i].prose && !text.prose {
					continue
				}
				for _, found := range pattern.FindAllString(text.text, -1) {
					if exceptions[i] != nil && exceptions[i].MatchString(found) {
						continue
					}
					t.Errorf("%s:%d: %q %s: write %s", file.path, text.line, found, words[i].reason, words[i].write)
				}
			}
		}
	}
}

type readText struct {
	line int
	text string
	// prose reports whether it is a comment or a part of a guide.
	prose bool
}

// texts returns what people read: comments and string literals of Go files, and Markdown without its code. The lines of
// a paragraph are joined, because a phrase may begin at the end of a line.
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
	commented := -1 // the line of the latest comment
	for {
		position, tok, literal := s.Scan()
		switch line := file.Line(position); tok {
		case token.EOF:
			return texts
		case token.COMMENT:
			if line == commented+1 && strings.HasPrefix(literal, "//") {
				texts[len(texts)-1].text += strings.TrimPrefix(literal, "//")
			} else {
				texts = append(texts, readText{line, literal, true})
			}
			commented = line
		case token.STRING:
			if text, err := strconv.Unquote(literal); err == nil {
				texts, commented = append(texts, readText{line, text, false}), -1
			}
		}
	}
}

var codeSpan = regexp.MustCompile("`[^`]*`")

func textsOfMarkdown(content string) (texts []readText) {
	fenced, begins, number := false, true, 0
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimSpace(line)
		fence := strings.HasPrefix(line, "```")
		if fence {
			fenced = !fenced
		}
		switch {
		case fence || fenced || line == "":
			begins = true
		case begins:
			texts, begins = append(texts, readText{number, line, true}), false
		default:
			texts[len(texts)-1].text += " " + line
		}
	}
	for i := range texts {
		texts[i].text = codeSpan.ReplaceAllString(texts[i].text, "")
	}
	return texts
}

// A phrase may begin on one line and end on the next.
func TestWords_JoinsLines(t *testing.T) {
	for name, tc := range map[string]struct {
		texts, want []readText
	}{
		"comment": {
			textsOfGo([]byte("package a // one\n\n// two\n// three\nvar a = \"four\" // five\n\n// six\n")),
			[]readText{
				{1, "// one", true}, {3, "// two three", true}, {5, "four", false}, {5, "// five", true}, {7, "// six", true},
			},
		},
		"guide": {
			textsOfMarkdown("# One\n\ntwo `code\nand` more\nthree\n\n```\ncode\n```\nfour"),
			[]readText{{1, "# One", true}, {3, "two  more three", true}, {10, "four", true}},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.texts, cmp.AllowUnexported(readText{})); diff != "" {
			t.Errorf("%s: unexpected texts (-want +got):\n%s", name, diff)
		}
	}
}
