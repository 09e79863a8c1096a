// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"regexp/syntax"
	"strings"
)

// fromPattern returns up to three texts that match a regular expression. It returns none if it is empty or not one of
// Go.
func fromPattern(pattern string) []string {
	if pattern == "" {
		return nil
	}
	expression, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	var texts []string
	for number := range 3 {
		var b strings.Builder
		write(&b, expression, number)
		texts = append(texts, b.String())
	}
	return texts
}

// write writes a text that matches an expression. The number chooses among alternatives, characters and repetitions.
func write(b *strings.Builder, e *syntax.Regexp, number int) {
	repeat := func(least, most int) {
		n := least + number
		if most >= 0 {
			n = min(n, most)
		}
		for range n {
			write(b, e.Sub[0], number)
		}
	}
	switch e.Op {
	case syntax.OpLiteral:
		b.WriteString(string(e.Rune))
	case syntax.OpCharClass:
		b.WriteRune(characterOf(e.Rune, number))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune('a' + rune(number))
	case syntax.OpCapture:
		write(b, e.Sub[0], number)
	case syntax.OpConcat:
		for _, part := range e.Sub {
			write(b, part, number)
		}
	case syntax.OpAlternate:
		write(b, e.Sub[number%len(e.Sub)], number)
	case syntax.OpStar:
		repeat(0, -1)
	case syntax.OpPlus:
		repeat(1, -1)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(e.Min, e.Max)
	}
}

// characterOf returns a character of ranges, preferably a lower-case letter or a digit.
func characterOf(ranges []rune, number int) rune {
	for _, preferred := range []string{"abc", "123", "ABC"} {
		want := rune(preferred[number%len(preferred)])
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	if len(ranges) == 0 {
		return 'a'
	}
	return ranges[0]
}
