package broker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/duemq/duemq/internal/record"
)

// MaxTags is how many tags a subscription may name.
const MaxTags = 100

// anyTag selects every message, with a tag or without.
const anyTag = "*"

// tagFilter selects messages by tags. The zero value selects every message.
type tagFilter struct {
	tags   []string
	hashes []uint32 // of tags, in the same order
}

// parseTags reads a subscription in RocketMQ's form: "a || b", or "*" or nothing
// for every message.
func parseTags(s string) (f tagFilter, err error) {
	if s == "" || s == anyTag {
		return f, nil
	}
	for tag := range strings.SplitSeq(s, "||") {
		tag = strings.TrimSpace(tag)
		switch {
		case tag == anyTag:
			return tagFilter{}, nil
		case tag == "" || slices.Contains(f.tags, tag):
			continue
		case len(f.tags) == MaxTags:
			return f, fmt.Errorf("%w: a subscription to more than %d tags", ErrInvalid, MaxTags)
		}
		f.tags = append(f.tags, tag)
		f.hashes = append(f.hashes, record.TagHash(tag))
	}
	if len(f.tags) == 0 {
		return f, fmt.Errorf("%w: tags %q names none; want \"a || b\", or * for all", ErrInvalid, short(s))
	}
	return f, nil
}

func (f *tagFilter) all() bool { return len(f.tags) == 0 }

// mayMatch looks at the hash that stands in a queue's entry. The record decides.
func (f *tagFilter) mayMatch(hash uint32) bool {
	return len(f.hashes) == 0 || slices.Contains(f.hashes, hash)
}

func (f *tagFilter) matches(tag string) bool { return len(f.tags) == 0 || slices.Contains(f.tags, tag) }
