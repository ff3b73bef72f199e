"""Programs of their own that send one request again: `mcpsniff resend --as python` prints them, filled in.

They import nothing but the standard library. What was recorded stands in the constants between the two marks.
"""
