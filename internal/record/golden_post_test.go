package record_test

import (
	"fmt"
	"maps"

	"github.com/duemq/duemq/internal/record"
)

// addLaterFields names the payload bytes of commands 15 and up, counted by hand
// as those in goldenFields are.
func addLaterFields(all map[record.CommandType][][]field) map[record.CommandType][][]field {
	maps.Copy(all, map[record.CommandType][][]field{
		record.CommandLease: {{
			{1, "group 3"},
			{2, "queue 300"},
			{1, "3 runs"},
			{2, "from 10, 4 offsets"},
			{1, "attempt 1"},
			{2, "0 further, 1 offset: 14"},
			{1, "attempt 2"},
			{3, "985 further, 1 offset: 1000"},
			{1, "attempt 1"},
		}},
		record.CommandPost: {
			postFields("bits: once, name", nil, []field{
				{1, "bits of the message: no optional part"},
				{1, "queue 9"},
				{6, "stored: 1790000000123"},
				{5, `body "hello"`},
			}),
			postFields("bits: once, name, half", []field{
				{16, `producer "order-producers"`},
				{6, "check: 1790000006123"},
				{1, "kind of delay: 2"},
				{4, "delay: 1800000"},
			}, sendFields()[1:]),
		},
		record.CommandEndHalf: {append(refFields("1790000006123", "2: check", 0),
			field{1, "commit: yes"}, field{6, "due: 1790001800123"}, field{1, "level 16"})},
		record.CommandReset:     {{{1, "group 3"}, {2, "queue 300"}, {3, "offset 70000"}}},
		record.CommandOperation: {{{2, "number 300"}, {1, "state 1: running"}, {16, `spec "{"do":"cancel"}"`}}},
		record.CommandOperate:   {operateFields()},
	})
	return all
}

func postFields(bits string, half, message []field) []field {
	fields := []field{
		{4, "CRC-32C of the rest of the payload"},
		{1, bits},
		{16, "once: hash of the idempotency key"},
		{8, "print: 0x1122334455667788"},
		{6, "until: 1790086400123"},
		{16, "name: its hash"},
	}
	return append(append(fields, half...), message...)
}

func refFields(due, kind string, level int) []field {
	return []field{
		{6, "due: " + due},
		{5, "id 0x12345678"},
		{1, "kind " + kind},
		{1, "queue 9"},
		{2, "size 300"},
		{4, `hash of tag "paid"`},
		{1, fmt.Sprintf("level %d", level)},
	}
}

func operateFields() []field {
	fields := []field{{2, "number 300"}, {6, "cursor: due 1790001800123"}, {5, "id 0x12345678"}, {1, "kind 1: message"}, {1, "queue 9"}, {1, "2 entries"}}
	fields = append(append(fields, refFields("1790001800123", "1: message", 16)...), field{6, "new due: 1790000060123"})
	return append(append(fields, refFields("1790001800123", "1: message", 16)...), field{1, "new due: 0, cancelled"})
}
